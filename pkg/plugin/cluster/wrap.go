package cluster

import (
	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// Wrap gives a config the transport that every client of an API server is made with: answers
// are bounded, requests logged at a level of -v from LogRequestLevel on, reads repeated, and no
// request leaves for another server than that of the config. Known has learned what the log
// must not show; logins are those of the process.
//
// Credentials are added by client-go above this transport, and certificates are shown below it, so
// that what it does not send takes neither along.
func Wrap(config *rest.Config, level int, known *redact.Masker, logins *Logins) *rest.Config {
	config.Wrap(transport.Bounded(transport.Limits{}))
	if level >= LogRequestLevel {
		config.Wrap(LogRequests(level, known)) // below RetryReads: each try is a request
	}
	config.Wrap(RetryReads)
	origin, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return config // no client can be made of it, which says why
	}
	config.Wrap(transport.Redirects{Origin: origin}.Bound)
	logins.bind(config)
	return config
}
