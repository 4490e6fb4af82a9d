package policies

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Cluster is what came of the policies on one cluster of several.
type Cluster struct {
	Name     string `json:"name"` // of the context
	Server   string `json:"server,omitempty"`
	Policies int    `json:"policies"`
	Rules    int    `json:"rules"`
	Errors   int    `json:"errors"`
	// Problem is the first error.
	Problem string `json:"problem,omitempty"`
}

// Join returns the list of all policies of several clusters. Those that are the same on several of them, whatever kinds
// these have, are there once and name the clusters. A nil list is that of a cluster that could not be read.
func Join(clusters []Cluster, lists []*List) List {
	out := List{APIVersion: apiVersion, Kind: listKind, Clusters: clusters, Policies: []Policy{}}
	policies, problems := map[string]int{}, map[string]int{}
	for i, l := range lists {
		if l == nil {
			continue
		}
		c := &out.Clusters[i]
		c.Policies, c.Errors = len(l.Policies), l.Broken()
		for _, p := range l.Policies {
			c.Rules += len(p.Rules)
			text, _ := json.Marshal(p) // it has strings only
			out.Policies = addOnce(out.Policies, policies, string(text)+string(p.digest[:]), p)
			at := &out.Policies[policies[string(text)+string(p.digest[:])]]
			at.Clusters = append(at.Clusters, c.Name)
		}
		for _, x := range l.Problems {
			id := fmt.Sprintf("%q", append(x.place(nil), string(x.Severity)))
			out.Problems = addOnce(out.Problems, problems, id, x)
			at := &out.Problems[problems[id]]
			at.Clusters = append(at.Clusters, c.Name)
		}
		if errs := l.Errors(); len(errs) > 0 && c.Problem == "" {
			c.Problem = errs[0].Text
		}
		out.Idle += l.Idle
	}
	return out
}

// addOnce adds to a list what is not there under its id, and notes where it is.
func addOnce[T any](to []T, places map[string]int, id string, what T) []T {
	if _, is := places[id]; is {
		return to
	}
	places[id] = len(to)
	return append(to, what)
}

// where names the clusters of a policy in a table.
func (l *List) where(clusters []string) string {
	if len(clusters) == len(l.Clusters) {
		return "all"
	}
	return strings.Join(clusters, ", ")
}

// on says behind a text on which clusters that holds, if not on all.
func (l *List) on(clusters []string) string {
	if len(clusters) == len(l.Clusters) {
		return ""
	}
	return fmt.Sprintf(" (on %s)", strings.Join(clusters, ", "))
}
