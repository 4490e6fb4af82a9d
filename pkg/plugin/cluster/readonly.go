package cluster

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

// RefusedError reports a request that was not sent: one that may write, by a
// read-only Client, or one that a policy may not make.
type RefusedError struct{ Method, Path string }

// Error names the request.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s %s refused: only reads, access reviews and dry runs are allowed here", e.Method, e.Path)
}

// readOnlyTransport lets only requests pass that cannot change anything.
type readOnlyTransport struct {
	prefix string // the path under which a proxy serves the API server
	next   http.RoundTripper
}

func readOnly(prefix string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return readOnlyTransport{prefix, next} }
}

// RoundTrip refuses what is not harmless, before it leaves.
func (t readOnlyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !harmless(r, strings.TrimPrefix(r.URL.Path, t.prefix)) {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper closes the body even when it fails; nothing was read from it
		}
		return nil, &RefusedError{Method: r.Method, Path: r.URL.Path}
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below.
func (t readOnlyTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func harmless(r *http.Request, apiPath string) bool {
	if acts(apiPath) {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPost:
		return isAccessReview(apiPath) || isDryRun(r)
	default:
		return isDryRun(r)
	}
}

// isDryRun holds only when dryRun=All is all that the query says on the matter:
// what a server makes of two contradicting values is not for us to find out.
func isDryRun(r *http.Request) bool {
	return slices.Equal(r.URL.Query()["dryRun"], []string{"All"})
}

// acts tells whether a path does something even on a GET or a dry run: run a
// command in a container, open a tunnel, issue a token.
func acts(p string) bool {
	return slices.Contains([]string{"exec", "attach", "portforward", "proxy", "token"}, subresourceOf(p))
}

// subresourceOf finds the subresource that a path names, or that it leads through.
func subresourceOf(p string) string {
	segments := strings.Split(strings.Trim(path.Clean(p), "/"), "/")
	prefix := 2 // api/v1
	if segments[0] == "apis" {
		prefix = 3
	}
	if len(segments) < prefix {
		return ""
	}
	segments = segments[prefix:]
	if len(segments) > 2 && segments[0] == "namespaces" && !slices.Contains([]string{"status", "finalize"}, segments[2]) {
		segments = segments[2:]
	}
	if len(segments) < 3 {
		return ""
	}
	return segments[2]
}

// isAccessReview tells whether a POST only asks what somebody may do. Token
// reviews and requests are not among them: they carry credentials.
func isAccessReview(p string) bool {
	segments := strings.Split(strings.Trim(path.Clean(p), "/"), "/")
	if len(segments) < 4 || segments[0] != "apis" {
		return false
	}
	resource := segments[3]
	if len(segments) == 6 && resource == "namespaces" {
		resource = segments[5]
	} else if len(segments) != 4 {
		return false
	}
	switch segments[1] {
	case "authorization.k8s.io":
		return slices.Contains([]string{
			"subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews",
		}, resource)
	case "authentication.k8s.io":
		return resource == "selfsubjectreviews"
	default:
		return false
	}
}
