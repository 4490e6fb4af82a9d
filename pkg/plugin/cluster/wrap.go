package cluster

import (
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// MaxLogLevel is the highest level of -v at which client-go logs no bodies, which have values of Secrets.
const MaxLogLevel = 7

// Wrap gives a config the transport that every client of an API server is made with: answers
// are bounded, and no request leaves for another server than that of the config.
//
// Credentials are added by client-go above this transport, and certificates are shown below it, so
// that what it does not send takes neither along.
func Wrap(config *rest.Config) *rest.Config {
	config.Wrap(transport.Bounded(transport.MaxBytes, "; ask for less, for instance with a selector or a smaller --chunk-size"))
	origin, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return config // no client can be made of it, which says why
	}
	config.Wrap(transport.Redirects{Origin: origin}.Bound)
	if origin.User != nil {
		loginOf(config, origin)
	}
	if p := config.AuthProvider; p != nil && p.Name == "oidc" {
		transport.AllowLogins(p.Config["idp-issuer-url"])
	}
	return config
}

// loginOf takes the user and the password out of the URL of a server, which client-go logs.
func loginOf(config *rest.Config, server *url.URL) {
	bare := *server
	bare.User = nil
	config.Host = bare.String()
	if config.Username == "" && config.BearerToken == "" && config.BearerTokenFile == "" && config.AuthProvider == nil && config.ExecProvider == nil {
		config.Username = server.User.Username()
		config.Password, _ = server.User.Password()
	}
}
