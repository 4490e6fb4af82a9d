package plugin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// Exceptions decide what a policy changes. That they may not be read is usual, and
// only reported; that the server fails to hand them out leaves a preview without a verdict,
// and an apply without a write.
func TestUnreadInputs(t *testing.T) {
	known := discovery("v1 configmaps ConfigMap get,list,patch", "v1 namespaces Namespace get,list cluster", "kyverno.io/v2 policyexceptions PolicyException get,list")
	for name, c := range map[string]struct {
		args       []string
		answer     int
		code       int
		out, quiet string
	}{
		"forbidden":             {[]string{"preview"}, http.StatusForbidden, process.ExitChanges, "1 would change (1 field), 0 would not. 1 warning.", "warning: cannot read policyexceptions.kyverno.io"},
		"broken":                {[]string{"preview"}, http.StatusBadRequest, process.ExitIncomplete, "1 would change (1 field), 0 would not.", "error: cannot read policyexceptions.kyverno.io"},
		"broken, to be applied": {[]string{"apply-existing", "--yes"}, http.StatusBadRequest, process.ExitNothing, "", "error: nothing was written: cannot read policyexceptions.kyverno.io"},
		"not there":             {[]string{"preview"}, http.StatusOK, process.ExitChanges, "1 would change (1 field), 0 would not.\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &apiServer{instead: func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				body := known[r.URL.Path]
				switch {
				case r.URL.Path != "/apis/kyverno.io/v2/policyexceptions":
				case c.answer == http.StatusOK:
					body = `{"apiVersion": "kyverno.io/v2", "kind": "PolicyExceptionList", "items": []}`
				default:
					refuse(w, c.answer, strings.ReplaceAll(http.StatusText(c.answer), " ", ""), "no", "")
					return true
				}
				if body != "" {
					fmt.Fprint(w, body)
				}
				return body != ""
			}}
			s.Server = httptest.NewServer(s)
			defer s.Close()
			got := runAgainst(t, s, "{token: hidden}", append(c.args, "-q", "-p", "SIMPLE"))
			if got.code != c.code || !strings.Contains(got.out, c.out) || !strings.Contains(got.errOut, c.quiet) || c.quiet == "" && got.errOut != "" {
				t.Errorf("exit code %d, want %d; standard output:\n%s\nstandard error:\n%s", got.code, c.code, got.out, got.errOut)
			}
		})
	}
}
