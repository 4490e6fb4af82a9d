package input

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// kustomize quotes what it cannot use: all literals of a Secret when one of them is wrong, and the data of
// one that a patch does not fit.
func TestKustomizeErrorsQuoteNoSecrets(t *testing.T) {
	const generator = "secretGenerator: [{name: s, literals: [password=hunter2hunter2]}]\n"
	const secret = "resources: [s.yaml]\n"
	for name, c := range map[string]struct{ kustomization, secret, want string }{
		"a literal":          {"secretGenerator: [{name: s, literals: [password=hunter2hunter2, hunter3hunter3]}]\n", "", "a literal of a generator is not KEY=VALUE"},
		"a patch":            {generator + "patches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: s}, data: [hunter2hunter2]}'}]\n", "", "expected MappingNode"},
		"an alias":           {secret, "stringData: {a: *hunter2hunter2}", "s.yaml"},
		"a tag":              {secret, "stringData: {a: !!int hunter2hunter2}", "as a !!int"},
		"a key that is none": {secret, "stringData: {? [hunter2hunter2] : x}", "invalid ***"},
		"a number":           {secret, "stringData: {? {a: hunter2hunter2} : x}", "invalid ***"},
		"an indentation":     {secret, "stringData:\n  a: hunter2hunter2\n b: x", "line 5: did not find expected key"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "kustomization.yaml"), c.kustomization)
			write(t, filepath.Join(dir, "s.yaml"), "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"+c.secret+"\n")
			var failed error
			err := (&Reader{}).readKustomization(t.Context(), Files{Kustomize: dir}, func(_ engine.Document, err error) bool {
				failed = err
				return true
			})
			if err == nil {
				err = failed
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter") {
				t.Errorf("got %v, want an error with %q and nothing of the Secret", err, c.want)
			}
		})
	}
}

// TestKustomizationsFetchNothing tries what kustomize would clone or fetch, in each place, beside a
// git that notes that it was called.
func TestKustomizationsFetchNothing(t *testing.T) {
	bin, called := t.TempDir(), filepath.Join(t.TempDir(), "called")
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho \"$@\" >> "+called+"\nexit 1\n"), 0o700); err != nil { // it is to be run
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a request for %s", r.URL) }))
	defer server.Close()
	paths := []string{
		server.URL + "/a.yaml", server.URL + "/org/repo", strings.ToUpper(server.URL) + "/a", "http:" + strings.TrimPrefix(server.URL, "http://"),
		"https://me:hidden@github.com/org/repo", "git::https://me:hidden@example.com/org/repo", "GIT::HTTPS://example.com/a/b?ref=x", "git::git::https://example.com/a/b",
		"github.com/org/repo", "GitHub.com:org/repo.git", "git@github.com:org/repo", "me@example.com:org/repo.git", "git::me@example.com:a.git", "m-1@127.0.0.1/a/b",
		"ssh://git@example.com/org/repo.git", "file:///tmp/repo", "File://repo//x", "git::github.com/a/b//c",
	}
	tried := 0
	for _, path := range paths {
		for _, field := range []string{"resources", "bases", "components", "generators", "transformers", "validators"} {
			dir := t.TempDir()
			for _, local := range []string{path, "base"} { // a directory of that name makes no difference
				if err := os.MkdirAll(filepath.Join(dir, filepath.Clean(local)), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(dir, "base", "kustomization.yaml"), field+": ["+strconv.Quote(path)+"]\n")
			write(t, filepath.Join(dir, "kustomization.yaml"), "resources: [base]\n")
			for _, root := range []string{dir, filepath.Join(dir, "base")} {
				err := (&Reader{}).readKustomization(t.Context(), Files{Kustomize: root}, func(engine.Document, error) bool { return true })
				if err == nil || !strings.Contains(err.Error(), "kubectl kustomize") || !strings.Contains(err.Error(), "base/kustomization.yaml: ") || strings.Contains(err.Error(), "hidden") {
					t.Errorf("%s in %s: error %v", path, field, err)
				}
				tried++
			}
		}
		err := (&Reader{}).readKustomization(t.Context(), Files{Kustomize: path}, func(engine.Document, error) bool { return true })
		if err == nil || !strings.Contains(err.Error(), "kubectl kustomize") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("-k %s: error %v", path, err)
		}
	}
	if text, err := os.ReadFile(called); err == nil {
		t.Errorf("git was called: %s", text)
	}
	t.Logf("%d kustomizations", tried)
}
