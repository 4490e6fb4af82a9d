package plugin_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-mutate": func() {
			streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
			os.Exit(plugin.Main(os.Args, streams))
		},
	})
}

// TestScript runs the program on manifests, as a user would. `exits N command`
// asserts the exact exit code.
func TestScript(t *testing.T) {
	reachable := startServers(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("KUBECONFIG", e.WorkDir+"/no-kubeconfig")
			return reachable.describe(e.WorkDir)
		},
		RequireExplicitExec: true,
		UpdateScripts:       *updateScripts,
	})
}
