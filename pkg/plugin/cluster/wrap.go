package cluster

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// MaxLogLevel is the highest level of -v at which client-go logs no bodies, which have values of Secrets.
const MaxLogLevel = 7

// Wrap gives a config the transport that every client of an API server is made with: answers
// are bounded, reads repeated, and no request leaves for another server than that of the config.
//
// Credentials are added by client-go above this transport, and certificates are shown below it, so
// that what it does not send takes neither along.
func Wrap(config *rest.Config) *rest.Config {
	config.Wrap(transport.Bounded(transport.Limits{Advice: "; ask for less, for instance with a selector or a smaller --chunk-size"}))
	for kind, most := range maxDescribed {
		config.Wrap((&transport.Total{
			Counts: func(r *http.Request) bool { return described(config, r.URL.Path) == kind },
			What:   saysAbout(config, kind), Requests: maxAPIRequests, Decoded: most,
		}).Bound)
	}
	config.Wrap(boundGroups(config))
	config.Wrap(RetryReads)
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

// maxAPIRequests is how many requests may ask for each kind of what describes an API.
const maxAPIRequests = 5_000

// maxDescribed is how many bytes all answers of a kind may take when they are decoded. The resources of
// 10,000 custom kinds take some 30 MiB, the schemas of a large group some 10 MiB.
var maxDescribed = map[string]int64{resources: maxResources, schemas: maxSchemas} //nolint:gochecknoglobals // an immutable table

const (
	maxResources = 128 << 20
	maxSchemas   = 512 << 20
)

// The kinds of what describes an API.
const (
	resources = "resources"
	schemas   = "schemas"
)

// described returns what a path of the server of a config describes, if anything.
func described(config *rest.Config, path string) string {
	parts := strings.Split(strings.Trim(below(config, path), "/"), "/")
	switch {
	case parts[0] == "openapi":
		return schemas
	case parts[0] == "api" && len(parts) <= len([]string{"api", "VERSION"}), parts[0] == "apis" && len(parts) <= len([]string{"apis", "GROUP", "VERSION"}):
		return resources
	}
	return ""
}

// below returns what follows the path of the server of a config.
func below(config *rest.Config, path string) string {
	if origin, _, err := rest.DefaultServerUrlFor(config); err == nil {
		path = strings.TrimPrefix(path, strings.TrimSuffix(origin.Path, "/"))
	}
	return path
}

// saysAbout names the answers of a kind in errors.
func saysAbout(config *rest.Config, kind string) string {
	return "what " + withoutPassword(config.Host) + " says about its " + kind
}
