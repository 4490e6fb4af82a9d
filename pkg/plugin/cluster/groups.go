package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// maxVersions is how many versions of API groups a server may list. Clients ask for each, at the
// pace of --kube-api-qps.
const maxVersions = 2_000

// boundGroups wraps a transport so that a list of API groups with more than maxVersions is a
// *transport.SizeError: before a request for each of them waits for its turn.
func boundGroups(config *rest.Config) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return groupsTransport{config, next} }
}

type groupsTransport struct {
	config *rest.Config
	next   http.RoundTripper
}

// RoundTrip sends the request, and counts what its answer lists.
func (t groupsTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK || !listsGroups(t.config, r.URL.Path) {
		return response, err
	}
	body, err := io.ReadAll(response.Body) // bounded by the transports below
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	if versionsIn(body) > maxVersions {
		return nil, &transport.SizeError{Answer: saysAbout(t.config, resources), Limit: fmt.Sprintf("lists more than %d versions of API groups", maxVersions)}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t groupsTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// listsGroups reports whether a path is that of the list of groups, or of the versions of the one without a name.
func listsGroups(config *rest.Config, path string) bool {
	return described(config, path) == resources && !strings.Contains(strings.Trim(below(config, path), "/"), "/")
}

// versionsIn counts the versions in a list of API groups of either form: one by one, or with
// their resources. Of what is none, the client says that.
func versionsIn(body []byte) int {
	type group struct {
		Versions []struct{} `json:"versions"`
	}
	var list struct {
		Versions []string `json:"versions"` // of the core group
		Groups   []group  `json:"groups"`
		Items    []group  `json:"items"`
	}
	_ = json.Unmarshal(body, &list)
	n := len(list.Versions)
	for _, groups := range [][]group{list.Groups, list.Items} {
		for _, g := range groups {
			n += len(g.Versions)
		}
	}
	return n
}
