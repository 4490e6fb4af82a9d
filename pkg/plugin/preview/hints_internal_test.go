package preview

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

func TestNextCommandStandardInput(t *testing.T) {
	root := &cobra.Command{Use: "kubectl-mutate"}
	c := NewCommand(flags.NewEvaluate(flags.NewConfig(nil)), "kubectl-mutate")
	root.AddCommand(c)
	if err := c.ParseFlags([]string{"-p", "policy.yaml", "-p", "-"}); err != nil {
		t.Fatal(err)
	}
	f := Flags{}
	f.Policies.Paths = []string{"policy.yaml", "-"}
	if got := f.hints(c, nil); *got != (output.HintCollector{}) {
		t.Errorf("standard input is spent, and the advice is %+v", got)
	}
	// A plan holds the policies.
	if err := c.Flags().Set("save", "x.plan"); err != nil {
		t.Fatal(err)
	}
	if got := f.hints(c, nil).Apply; got != "kubectl-mutate apply-existing --plan x.plan" {
		t.Errorf("the advice after --save is %q", got)
	}
}

// What is written in a cluster is set back where something else keeps it: the manifests are to change.
func TestFixCommand(t *testing.T) {
	root := &cobra.Command{Use: "kubectl-mutate"}
	c := NewCommand(flags.NewEvaluate(flags.NewConfig(nil)), "kubectl-mutate")
	root.AddCommand(c)
	if err := c.ParseFlags([]string{"-p", "my policies/", "-A", "--skip", "a/b", "-o", "summary"}); err != nil {
		t.Fatal(err)
	}
	f := Flags{}
	f.Policies.Paths = []string{"my policies/"}
	if got, want := f.hints(c, nil).Fix, "kubectl-mutate fix -p 'my policies/' --skip=a/b -f MANIFESTS"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Objects.Filenames = []string{"deploy/"}
	if got := f.hints(c, nil).Fix; got != "" {
		t.Errorf("without a cluster the advice is %q", got)
	}
}
