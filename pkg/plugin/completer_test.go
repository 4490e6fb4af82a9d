package plugin_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// completed is what a shell offers for the last of the words, and ":4" where it
// offers no files beside that (":6", and no space behind it).
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	return completedWith(t, "testdata/kubeconfig.json", words...) // whose server is not there
}

// completedWith is completed with a kubeconfig.
func completedWith(t *testing.T, file string, words ...string) []string {
	t.Helper()
	config := genericclioptions.NewConfigFlags(false)
	config.KubeConfig = &file
	root := &cobra.Command{Use: "mutate", SilenceErrors: true, SilenceUsage: true}
	config.AddFlags(root.PersistentFlags())
	change := &cobra.Command{Use: "preview", Run: func(*cobra.Command, []string) {}}
	change.Flags().String("dry-run", "", "")
	change.Flags().StringSlice("contexts", nil, "")
	root.AddCommand(change, &cobra.Command{Use: "other", Run: func(*cobra.Command, []string) {}})
	plugin.Add(root, config)
	var out strings.Builder
	root.SetOut(&out)
	root.SetErr(&strings.Builder{})
	root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, words...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(out.String()) {
		names = append(names, strings.TrimSuffix(line, "\n"))
	}
	return names
}

func TestCompletion(t *testing.T) {
	for name, c := range map[string]struct {
		words []string
		want  []string
	}{
		"contexts of the kubeconfig, in order":          {[]string{"preview", "--context", "st"}, []string{"stable", "staging", ":4"}},
		"several contexts, and all":                     {[]string{"preview", "--contexts", ""}, []string{"production", "stable", "staging", "all", ":4"}},
		"several contexts behind others":                {[]string{"preview", "--contexts", "x,st"}, []string{"x,stable", "x,staging", ":4"}},
		"clusters":                                      {[]string{"preview", "--cluster", ""}, []string{"local", ":4"}},
		"users":                                         {[]string{"other", "--user", "m"}, []string{"me", ":4"}},
		"the values that a flag takes":                  {[]string{"preview", "--dry-run", ""}, []string{"none", "client", "server", ":4"}},
		"no files where a command takes no arguments":   {[]string{"other", ""}, []string{":4"}},
		"nothing where the cluster does not answer":     {[]string{"preview", "deploy"}, []string{":6"}},
		"no namespaces where the cluster does not, too": {[]string{"preview", "--namespace", ""}, []string{":4"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, completed(t, c.words...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Whatever the names are, what is offered is a word to every shell, also to one that expands it
// (compgen does, with which older versions of cobra complete), and does nothing to a terminal.
func TestCompletionOfHostileNames(t *testing.T) {
	contexts := map[string]any{}
	for _, text := range hostile.Texts() {
		name := strings.ToValidUTF8(text.Text, "\ufffd")
		contexts[name], contexts["x"+name] = map[string]any{}, map[string]any{}
	}
	var named []any
	for name, context := range contexts {
		named = append(named, map[string]any{"name": name, "context": context})
	}
	content, err := output.MarshalYAML(map[string]any{"apiVersion": "v1", "kind": "Config", "contexts": named})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	offered := completedWith(t, file, "preview", "--context", "")
	offered = offered[:len(offered)-1]
	if len(offered) < 50 {
		t.Errorf("only %q are offered", offered)
	}
	var lines strings.Builder
	for _, name := range offered {
		if err := errors.Join(hostile.Terminal(name), hostile.Legible(name)); err != nil {
			t.Error(err)
		}
		lines.WriteString("compgen -W " + wording.ShellQuote(name) + " 2>/dev/null\nshow " + name + " >/dev/null\n")
	}
	for shell, got := range hostile.Paste(t, "IFS='\n'\n"+lines.String()+"true\n") {
		if shell == "bash" && strings.TrimSpace(got) == "" {
			t.Error("compgen has completed nothing")
		}
	}
}
