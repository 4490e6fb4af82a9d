package cluster

import (
	"net/http"
	"strings"

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
	config.Wrap((&transport.Total{
		Counts: describesAPI(config), What: "what " + config.Host + " says about its API", Requests: maxAPIRequests, Decoded: maxAPIDecoded,
	}).Bound)
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

// The bounds of what a server says about its API: its groups, their resources, and the schemas of the
// kinds that a run meets. The resources of 10,000 custom kinds take some 30 MiB, the schemas of large
// groups some 10 MiB each.
const (
	maxAPIRequests = 5_000
	maxAPIDecoded  = 1 << 30
)

// describesAPI picks the requests of discovery and of OpenAPI documents.
func describesAPI(config *rest.Config) func(*http.Request) bool {
	base := ""
	if origin, _, err := rest.DefaultServerUrlFor(config); err == nil {
		base = strings.TrimSuffix(origin.Path, "/")
	}
	return func(r *http.Request) bool {
		parts := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, base), "/"), "/")
		switch parts[0] {
		case "openapi":
			return true
		case "api":
			return len(parts) <= len([]string{"api", "VERSION"})
		case "apis":
			return len(parts) <= len([]string{"apis", "GROUP", "VERSION"})
		}
		return false
	}
}
