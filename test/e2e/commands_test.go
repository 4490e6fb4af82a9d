package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdExits runs a program and demands an exit code: exits CODE PROGRAM ARG...
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			ts.Fatalf("%v", err)
		}
		got = ended.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cmdModuleFile copies a file of a Go module, which is downloaded if need be: modulefile MODULE@VERSION PATH COPY.
func cmdModuleFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: modulefile MODULE@VERSION PATH COPY")
	}
	out, err := exec.Command("go", "mod", "download", "-json", args[0]).Output() // of a script of ours
	ts.Check(err)
	var module struct{ Dir string }
	ts.Check(json.Unmarshal(out, &module))
	content, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(args[1])))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), content, 0o600))
}

// cmdLive compares a field on the server: live TYPE/NAME JSONPATH VALUE.
func cmdLive(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: live TYPE/NAME JSONPATH VALUE")
	}
	object, path, want := args[0], args[1], args[2]
	got := scriptOf(ts).kubectl(ts, "get", object, "-o", "jsonpath="+path)
	switch {
	case neg && got == want:
		ts.Fatalf("%s of %s is %q", path, object, got)
	case !neg && got != want:
		ts.Fatalf("%s of %s is %q, want %q", path, object, got, want)
	}
}

// cmdRemember notes the versions of all objects of the script.
func cmdRemember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: remember")
	}
	s := scriptOf(ts)
	s.remembered = s.versions(ts)
}

// cmdUntouched demands that nothing was written since remember.
func cmdUntouched(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if len(args) > 0 || s.remembered == "" {
		ts.Fatalf("usage: untouched, after remember")
	}
	diff := cmp.Diff(strings.Split(s.remembered, "\n"), strings.Split(s.versions(ts), "\n"))
	switch {
	case neg && diff == "":
		ts.Fatalf("nothing was written")
	case !neg && diff != "":
		ts.Fatalf("objects were written (-before +after):\n%s", diff)
	}
}

// versions lists every object in the script's namespaces with its version.
// Events count: a run that claims to write nothing writes no events either.
func (s *script) versions(ts *testscript.TestScript) string {
	const kinds = "configmaps,secrets,services,endpoints,pods,serviceaccounts,events," +
		"deployments.apps,statefulsets.apps,daemonsets.apps,jobs.batch,cronjobs.batch,roles,rolebindings"
	var all strings.Builder
	for _, namespace := range s.namespaces {
		all.WriteString(s.kubectl(ts, "get", kinds, "-n", namespace, "-o",
			`jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.uid} {.metadata.resourceVersion}{"\n"}{end}`))
	}
	return all.String()
}

// cmdNamespaces makes namespaces whose names a policy dictates.
func cmdNamespaces(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: namespaces NAME...")
	}
	for _, name := range args {
		ts.Check(scriptOf(ts).addNamespace(map[string]any{"name": name}))
	}
}

// kubectl runs kubectl as the administrator and leaves the script's stdout and
// stderr alone.
func (s *script) kubectl(ts *testscript.TestScript, args ...string) string {
	var stderr bytes.Buffer
	cmd := s.kubectlCommand(ts.Getenv("HOME"), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		ts.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
