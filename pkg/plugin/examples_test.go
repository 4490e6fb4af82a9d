package plugin_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// example is one command line of a command's help.
type example struct {
	of   *cobra.Command
	line string
	args []string // without the program
}

var (
	// ownCommand finds the plugin's part of a line of shell.
	ownCommand = regexp.MustCompile(`(?:kubectl mutate|kubectl-mutate) ([^|>)&]*)`)
	substitute = regexp.MustCompile(`"\$\([^"]*\)"`)
)

func newRoot() *cobra.Command {
	return plugin.NewCommand("kubectl mutate", genericiooptions.NewTestIOStreamsDiscard(), nil)
}

func examples(t *testing.T) []example {
	t.Helper()
	var out []example
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			found := ownCommand.FindAllStringSubmatch(substitute.ReplaceAllString(line, "substituted"), -1)
			if len(found) == 0 {
				t.Errorf("%s: this example does not call the program: %s", c.CommandPath(), line)
			}
			for _, match := range found {
				out = append(out, example{c, line, strings.Fields(strings.ReplaceAll(match[1], `"`, ""))})
			}
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot())
	return out
}

// Every command that does something shows how, and every line of it is one that
// the command takes.
func TestHelpExamplesParse(t *testing.T) {
	all := examples(t)
	for _, e := range all {
		c, rest, err := newRoot().Find(e.args)
		if err != nil || c.Name() == "mutate" {
			t.Errorf("%s: no such command in %q: %v", e.of.CommandPath(), e.line, err)
			continue
		}
		if err := c.ParseFlags(rest); err != nil {
			t.Errorf("%s: %q: %v", e.of.CommandPath(), e.line, err)
			continue
		}
		if err := c.ValidateArgs(c.Flags().Args()); err != nil {
			t.Errorf("%s: %q: %v", e.of.CommandPath(), e.line, err)
		}
	}
	for _, c := range newRoot().Commands() {
		shown := slices.ContainsFunc(all, func(e example) bool { return e.of.Name() == c.Name() || e.of.Parent().Name() == c.Name() })
		if !shown && !c.Hidden && c.Name() != "options" && c.Name() != "help" {
			t.Errorf("the help of %s has no example", c.CommandPath())
		}
	}
}

// needsCluster reports whether an example cannot run on files alone.
func (e example) needsCluster() bool {
	switch e.args[0] {
	case "completion", "version":
		return false
	case "policies":
		return slices.Contains(e.args, "--from-cluster")
	}
	return !slices.Contains(e.args, "-f")
}

func TestHelpExamplesRun(t *testing.T) {
	all := examples(t)
	archive, err := txtar.ParseFile("testdata/examples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "no-kubeconfig")
	for _, f := range archive.Files {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, "", f.Name, string(f.Data))
	}
	ran := 0
	for _, e := range all {
		if e.needsCluster() {
			continue
		}
		ran++
		code, out, errOut := runCommand(t, e.args...)
		if code != process.ExitOK && code != process.ExitChanges || out == "" {
			t.Errorf("%q: exit code %d\n%s", e.line, code, errOut)
		}
	}
	if ran < 5 {
		t.Errorf("only %d examples could run", ran)
	}
}

// The examples of tests pass.
func TestExamplesOfTests(t *testing.T) {
	code, out, errOut := runCommand(t, "test", filepath.Join("..", "..", "examples", "tests"))
	if want := "4 tests, 8 results: 8 passed.\n"; code != process.ExitOK || out != want {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
}
