package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

func TestScripts(t *testing.T) { testscript.Run(t, scriptsIn(t, "script")) }

// TestDocuments runs the examples of Kyverno's documentation that the corpus holds too (seed-docs).
func TestDocuments(t *testing.T) {
	tier.Night(t, "TestConformance of pkg/plugin")
	testscript.Run(t, scriptsIn(t, "documents"))
}

// TestInstalledEngines runs the script that installs the engines' definitions. Every
// role that rbac prints says what they need then: no other script runs meanwhile.
func TestInstalledEngines(t *testing.T) { testscript.Run(t, scriptsIn(t, "engines")) }

// TestInstalledPolicies runs the scripts that install policies which the API
// server itself enforces, or which every run with --from-cluster meets: no other
// script runs meanwhile, none of them either, since a plan is of the policies in the cluster.
func TestInstalledPolicies(t *testing.T) { testscript.RunT(oneByOne{t}, scriptsIn(t, "installed")) }

// oneByOne runs scripts one after the other.
type oneByOne struct{ *testing.T }

func (oneByOne) Parallel() {}

func (o oneByOne) Run(name string, script func(testscript.T)) {
	o.T.Run(name, func(t *testing.T) { script(oneByOne{t}) })
}

func (oneByOne) Verbose() bool { return testing.Verbose() }

// scriptsIn are the scripts in a folder of testdata, and what they need.
func scriptsIn(t *testing.T, folder string) testscript.Params {
	t.Helper()
	plugin := t.TempDir()
	if err := buildPlugin(plugin); err != nil {
		t.Fatal(err)
	}
	admin, err := dynamic.NewForConfig(restConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	path := plugin + string(os.PathListSeparator) + filepath.Dir(server.kubectl) +
		string(os.PathListSeparator) + os.Getenv("PATH")
	return testscript.Params{
		Dir:                 filepath.Join("testdata", folder),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", path)
			return newScript(env, admin)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      cmdExits,
			"live":       cmdLive,
			"modulefile": cmdModuleFile,
			"remember":   cmdRemember,
			"untouched":  cmdUntouched,
			"namespaces": cmdNamespaces,
			"meanwhile":  cmdMeanwhile,
			"start":      cmdStart,
			"await":      cmdAwait,
			"becomes":    cmdBecomes,
			"serves":     cmdServes,
			"end":        cmdEnd,
		},
	}
}

// script is what the commands of one script share.
type script struct {
	admin      dynamic.Interface
	namespaces []string // the script's own comes first
	remembered string
	background *background // what start has started
}

type scriptKey struct{}

func scriptOf(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

// newScript gives a script its namespace and its users.
func newScript(env *testscript.Env, admin dynamic.Interface) error {
	s := &script{admin: admin}
	env.Values[scriptKey{}] = s
	env.Defer(s.cleanUp)
	if err := s.addNamespace(map[string]any{"generateName": "e2e-"}); err != nil {
		return err
	}
	// kubectl and the plugin cache API discovery in the home directory.
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("NAMESPACE", s.namespaces[0])
	for variable, user := range map[string]string{"KUBECONFIG": "", "VIEWER_KUBECONFIG": "viewer"} {
		file := filepath.Join(home, variable)
		if err := clientcmd.WriteToFile(*server.as(user, s.namespaces[0]), file); err != nil {
			return err
		}
		env.Setenv(variable, file)
	}
	return nil
}

func (s *script) addNamespace(metadata map[string]any) error {
	name, err := createNamespace(context.Background(), s.admin, metadata)
	if err == nil {
		s.namespaces = append(s.namespaces, name)
	}
	return err
}

func (s *script) cleanUp() {
	for _, name := range s.namespaces {
		// A namespace that stays behind harms no other script.
		_ = deleteNamespace(context.Background(), s.admin, name)
	}
}
