package completion_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/completion"
)

// completed is what a shell offers for the last of the words, and ":4" where it
// offers no files beside that (":6", and no space behind it).
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	file := "testdata/kubeconfig.json" // a context in it has a name on which a terminal would act; its server is not there
	config := genericclioptions.NewConfigFlags(false)
	config.KubeConfig = &file
	root := &cobra.Command{Use: "mutate", SilenceErrors: true, SilenceUsage: true}
	config.AddFlags(root.PersistentFlags())
	change := &cobra.Command{Use: "change", Run: func(*cobra.Command, []string) {}}
	change.Flags().String("color", "", "")
	root.AddCommand(change, &cobra.Command{Use: "other", Run: func(*cobra.Command, []string) {}})
	completion.Add(root, completion.Options{
		Config: config, Values: map[string][]string{"color": {"auto", "always"}}, Objects: []string{"change"},
	})
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
		"contexts of the kubeconfig, in order, but for those a terminal would act on": {[]string{"change", "--context", "st"}, []string{"stable", "staging", ":4"}},
		"clusters":                     {[]string{"change", "--cluster", ""}, []string{"local", ":4"}},
		"users":                        {[]string{"other", "--user", "m"}, []string{"me", ":4"}},
		"the values that a flag takes": {[]string{"change", "--color", ""}, []string{"auto", "always", ":4"}},
		"no files where a command takes no arguments":   {[]string{"other", ""}, []string{":4"}},
		"nothing where the cluster does not answer":     {[]string{"change", "deploy"}, []string{":6"}},
		"no namespaces where the cluster does not, too": {[]string{"change", "--namespace", ""}, []string{":4"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, completed(t, c.words...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
