package flags_test

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
)

func TestCheckFiles(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"different files":          {[]string{"--save=a", "--metrics=b", "--report=junit=c", "--report=sarif=d", "-p=e"}, ""},
		"streams":                  {[]string{"--report=junit=-", "--report=github", "-p=-"}, ""},
		"devices":                  {[]string{"--report=junit=/dev/stderr", "--report=sarif=/dev/stderr"}, ""},
		"the same directory":       {[]string{"--save=a/plan", "-p=a"}, ""},
		"a plan and a report":      {[]string{"--save=a", "--report=junit=./a"}, "--report junit=./a and --save a are the same file: name another one"},
		"metrics and a report":     {[]string{"--metrics=b/../a", "--report=junit=a"}, "--metrics b/../a and --report junit=a are the same file: name another one"},
		"two reports":              {[]string{"--report=junit=a", "--report=sarif=.//a"}, "--report junit=a and --report sarif=.//a are the same file: name another one"},
		"the plan over the policy": {[]string{"-p=x", "-p=a.yaml", "--save=./a.yaml"}, "--policy a.yaml and --save ./a.yaml are the same file: name another one"},
		"the metrics over objects": {[]string{"-f=x,a.yaml", "--metrics=a.yaml"}, "--filename a.yaml and --metrics a.yaml are the same file: name another one"},
	} {
		t.Run(name, func(t *testing.T) {
			set := pflag.NewFlagSet("preview", pflag.ContinueOnError)
			set.String("save", "", "")
			evaluate, report := flags.NewEvaluate(nil), flags.Report{}
			evaluate.AddFlags(set)
			report.AddFlags(set, "junit, sarif")
			if err := set.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := flags.CheckFiles(set); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The journal of an undo, and the plan that is shown, are named without a flag.
func TestCheckFilesOfArguments(t *testing.T) {
	set := pflag.NewFlagSet("undo", pflag.ContinueOnError)
	report := flags.Report{}
	report.AddFlags(set, "junit")
	if err := set.Parse([]string{"--report=junit=./run.jsonl"}); err != nil {
		t.Fatal(err)
	}
	want := "run.jsonl and --report junit=./run.jsonl are the same file: name another one"
	if err := flags.CheckFiles(set, "run.jsonl"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
