package flags_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
)

// What was typed can be typed again, each value as it was, and without what must
// stay secret.
func TestTyped(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.String("token", "", "")
	set.String("username", "", "")
	set.String("password", "", "")
	set.String("output", "diff", "")
	set.Bool("annotate", true, "")
	policies, objects := flags.Policies{}, flags.NewObjects()
	policies.AddFlags(set)
	objects.AddFlags(set)
	err := set.Parse([]string{
		"-p", "a policy.yaml", "-p", "b.yaml", "-p", "https://me:p@example.com/p.yaml?token=t&ref=v1", "--only", `x,y/z,"a,b"`, "-A", "--annotate=false", "-l", "app=web",
		"--token", "t", "--username", "u", "--password", "p", "--output", "json",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-A", "--annotate=false", "--only=x", "--only=y/z", `--only='"a,b"'`, "-p 'a policy.yaml'", "-p b.yaml", "-p 'https://xxxxx@example.com/p.yaml?token=xxxxx&ref=v1'", "-l app=web",
	}
	if diff := cmp.Diff(want, flags.Typed(set, "output")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	args := flags.Args(set, "output", "annotate", "all-namespaces", "selector")
	again := pflag.NewFlagSet("", pflag.ContinueOnError)
	policies.AddFlags(again)
	if err := again.Parse(args); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "y/z", "a,b"}, policies.Rules.Only); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
