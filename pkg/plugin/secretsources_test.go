package plugin_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// Wherever a policy gets a Secret from, what is shown is the same for two Secrets that differ in nothing but their
// values: with all formats, an external diff and reports.
func TestSecretsFromElsewhere(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"path": %q, "header": %q, "body": %q}`, r.URL.Path, r.Header.Get("X-Value"), body)
	}))
	defer echo.Close()
	dir := t.TempDir()
	script := write(t, dir, "differ", "#!/bin/sh\ncat \"$1\"/* \"$2\"/*; ls -R \"$1\" \"$2\" | grep -v :\n")
	if err := os.Chmod(script, 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("KUBECTL_EXTERNAL_DIFF", script)
	cases, err := filepath.Glob("testdata/secretsources/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatal(cases, err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			secretSource(t, archive.Files, echo.URL)
		})
	}
}

// secretSource runs the policy of a case in two worlds.
func secretSource(t *testing.T, files []txtar.File, echo string) {
	t.Helper()
	dir := t.TempDir()
	worlds := [2]*strings.Replacer{
		strings.NewReplacer("TEXT", "zQx7Wv9Kp3Jm5TyB", "NAME", "alpha-kjhgf", "SERVICE", echo),
		strings.NewReplacer("TEXT", "Hf2Lr8Dn4Gc6SbVq", "NAME", "bravo-qwert", "SERVICE", echo),
	}
	run := func(world *strings.Replacer, args ...string) string {
		t.Helper()
		for _, f := range files {
			write(t, dir, f.Name, world.Replace(string(f.Data)))
		}
		if strings.HasPrefix(args[0], "-") {
			args = append([]string{"preview"}, args...)
		}
		args = append(args, "-p", filepath.Join(dir, "policy.yaml"), "-f", filepath.Join(dir, "world.yaml"), "--allow-http")
		if args[0] != "convert" {
			args = append(args, "-q")
		}
		if len(files) > 2 {
			args = append(args, "--values", filepath.Join(dir, "values.yaml"))
		}
		code, out := secretsRun(t, args...)
		if code == plugin.ExitNothing && args[0] != "convert" { // which converts no policy in CEL
			t.Fatalf("%v: %s", args, out)
		}
		return out
	}
	if a, b := run(worlds[0], "-o", "json", "--show-secrets"), run(worlds[1], "-o", "json", "--show-secrets"); a == b {
		t.Fatalf("the Secret decides nothing: %s", run(worlds[0], "-o", "json", "--show-secrets", "--explain"))
	}
	report := filepath.Join(t.TempDir(), "report")
	formats := append(secretFormats(), []string{"--explain"}, []string{"--report", "html=" + report}, []string{"--report", "sarif=" + report}, []string{"--report", "junit=" + report})
	for _, args := range append(formats, otherCommands(t, dir)...) {
		shown := func(world *strings.Replacer) string {
			out := run(world, args...)
			if args[0] == "--report" {
				text, err := os.ReadFile(report)
				if err != nil {
					t.Fatal(err)
				}
				out += string(text)
			}
			return out
		}
		if diff := cmp.Diff(shown(worlds[0]), shown(worlds[1])); diff != "" {
			t.Errorf("%v: what is shown depends on the Secret:\n%s", args, diff)
		}
	}
}
