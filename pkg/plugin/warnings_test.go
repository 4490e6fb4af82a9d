package plugin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// However many warnings files or a server cause, no more than 1,000 are shown, and the others are counted. What comes
// of the run is the same.
func TestWarningsAreBounded(t *testing.T) {
	const all, most = 1500, 1000
	dir := t.TempDir()
	var objects, policies, foreign strings.Builder
	for i := range all + 1 {
		fmt.Fprintf(&objects, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {n: '%d'}}}\n---\n", i)
		fmt.Fprintf(&policies, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r%d, "+
			"match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]}}\n---\n", i)
	}
	foreign.WriteString(simplePolicy + "\n---\n")
	for i := range all {
		fmt.Fprintf(&foreign, "{apiVersion: v1, kind: Service, metadata: {name: s%d}}\n---\n", i)
	}
	write(t, dir, "objects.yaml", objects.String())
	write(t, dir, "policies.yaml", policies.String())
	write(t, dir, "foreign.yaml", foreign.String())
	write(t, dir, "policy.yaml", simplePolicy)
	write(t, dir, "object.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	told := fmt.Sprintf("%d more warnings and notes are not shown", all-most)
	of := func(args ...string) serverRun {
		args = append(strings.Fields(strings.ReplaceAll(strings.Join(args, " "), "DIR", dir)), "--color=never")
		var got serverRun
		got.code, got.out = secretsRun(t, args...)
		return got
	}
	for _, c := range []struct {
		args string
		code int
		word string
	}{
		{"preview -f DIR/objects.yaml -p DIR/policy.yaml -o name", plugin.ExitChanges, "warning: "},
		{"preview -f DIR/object.yaml -p DIR/policies.yaml -o json", plugin.ExitChanges, "warning: "},
		{"preview -f DIR/objects.yaml -p DIR/policy.yaml -o name --strict", plugin.ExitIncomplete, "error: "},
		{"preview -f DIR/object.yaml -p DIR/foreign.yaml -o name", plugin.ExitChanges, "warning: "},
		{"compare -f DIR/objects.yaml -p DIR/policy.yaml --with DIR/policy.yaml -o summary", plugin.ExitOK, "warning: "},
	} {
		got := of(c.args)
		if n := strings.Count(got.out, c.word+dir); got.code != c.code || n != most || strings.Count(got.out, "warning: "+told) != 1 {
			t.Errorf("%s: exit code %d, %d messages\n%.300s\n...\n%s", c.args, got.code, n, got.out, got.out[max(0, len(got.out)-300):])
		}
		if got := of(c.args, "-q"); c.word == "warning: " && (got.code != c.code || strings.Contains(got.out, "warnings and notes")) {
			t.Errorf("%s -q: exit code %d\n%.300s", c.args, got.code, got.out)
		}
	}
	for _, args := range []string{"-o table", "-o json"} {
		code, out := secretsRun(t, append([]string{"policies", "-p", filepath.Join(dir, "policies.yaml")}, strings.Fields(args)...)...)
		if n := strings.Count(out, "was read before"); code != plugin.ExitOK || n != most || strings.Count(out, told) != 1 {
			t.Errorf("policies %s: exit code %d, %d warnings\n%.300s", args, code, n, out)
		}
	}
	var marked strings.Builder
	for i := range all {
		fmt.Fprintf(&marked, "{apiVersion: v1, kind: ConfigMap, metadata: {name: n%d}, data: {k: v%d}}\n---\n", i, i)
	}
	write(t, dir, "marked.yaml", marked.String())
	write(t, dir, "mark.yaml", strings.Replace(simplePolicy, `"a": "b"`, `"{{ request.object.data.k }}": true`, 1))
	got := of("preview -f DIR/marked.yaml -p DIR/mark.yaml --strict -o name")
	if n := strings.Count(got.out, "error: "); got.code != plugin.ExitIncomplete || n != most+1 || strings.Count(got.out, "error: further warnings of rules (on ") != 1 {
		t.Errorf("of rules: exit code %d, %d errors\n%.300s", got.code, n, got.out)
	}
	s := &apiServer{}
	asked := 0
	s.hostile = func(w http.ResponseWriter, r *http.Request) bool {
		if asked++; r.URL.Path == "/api/v1/namespaces/default/configmaps" {
			for i := range all {
				w.Header().Add("Warning", fmt.Sprintf(`299 - "warned %d-%d"`, asked, i))
				w.Header().Add("Warning", `299 - "each time"`)
			}
		}
		return false
	}
	s.Server = httptest.NewServer(s)
	defer s.Close()
	got = runAgainst(t, s, "{token: hidden}", []string{"preview", "-p", "SIMPLE", "-o", "name"})
	if n := strings.Count(got.errOut, "Warning: "); got.code != plugin.ExitChanges || n != most || strings.Count(got.errOut, "each time") != 1 || !strings.Contains(got.errOut, "more warnings and notes are not shown") {
		t.Errorf("of a server: exit code %d, %d warnings\n%.300s", got.code, n, got.errOut)
	}
}
