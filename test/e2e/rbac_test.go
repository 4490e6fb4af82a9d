package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// A user with the printed roles can preview and apply. With any one rule less
// something fails, and the error names the resource of that rule.
func TestPrintedRolesAreEnoughAndNoneTooMany(t *testing.T) {
	plugin := t.TempDir()
	if err := buildPlugin(plugin); err != nil {
		t.Fatal(err)
	}
	for _, purpose := range []purpose{
		{name: "preview", act: []string{"preview"}, code: 1, also: [][]string{{"preview", "configmap/settings"}, {"explain", "configmap/settings"}}},
		{name: "preview of one object", role: []string{"configmap/settings"}, act: []string{"preview", "configmap/settings"}, code: 1},
		{name: "explain", role: []string{"configmap/settings", "--for", "explain"}, act: []string{"explain", "configmap/settings"}},
		{name: "explain what no policy matches", role: []string{"service/web", "--for", "explain"}, act: []string{"explain", "service/web"}},
		{name: "apply", role: []string{"--for", "apply"}, act: []string{"apply-existing", "--yes"}},
		{name: "apply to one object", role: []string{"secret/token", "--for", "apply"}, act: []string{"apply-existing", "secret/token", "--yes"}},
	} {
		t.Run(purpose.name, func(t *testing.T) {
			t.Parallel()
			r := newRoleTest(t, filepath.Join(plugin, "kubectl-mutate"), purpose)
			roles := r.roles(r.admin, r.command(append([]string{"rbac", "-o", "json"}, purpose.role...))...)
			r.enough(roles)
			for i := range roles {
				for j := range roles[i].Rules {
					r.less(roles, i, j)
				}
			}
		})
	}
}

// role is a Role, or a ClusterRole.
type role struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
	} `json:"metadata"`
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// purpose is what roles are for: the arguments of rbac that ask for them, those of
// the command that they are to be enough for, and its exit code.
type purpose struct {
	name      string
	role, act []string
	code      int
	also      [][]string // further commands that the roles are enough for
}

// roleTest runs commands as users to whom roles are given.
type roleTest struct {
	*testing.T
	purpose                        purpose
	program, namespace, dir, admin string
	users                          int
}

func newRoleTest(t *testing.T, program string, purpose purpose) *roleTest {
	r := &roleTest{T: t, program: program, purpose: purpose, namespace: newNamespace(t), dir: t.TempDir()}
	r.admin = filepath.Join(r.dir, "admin")
	if err := clientcmd.WriteToFile(*server.as("", r.namespace), r.admin); err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile("testdata/rbac.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		content := strings.ReplaceAll(string(f.Data), "$NAMESPACE", r.namespace)
		if err := os.WriteFile(filepath.Join(r.dir, f.Name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.kubectl("create", "-f", filepath.Join(r.dir, "objects.yaml"))
	return r
}

func (r *roleTest) kubectl(args ...string) {
	r.Helper()
	out, err := exec.CommandContext(r.Context(), server.kubectl, append([]string{"--kubeconfig", r.admin}, args...)...).CombinedOutput()
	if err != nil {
		r.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// run runs the plugin and returns its exit code, its output and its messages.
func (r *roleTest) run(kubeconfig string, args ...string) (code int, stdout, stderr string) {
	r.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(r.Context(), r.program, append(args, "--kubeconfig", kubeconfig)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, &out, &errOut
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "XDG_STATE_HOME="+r.dir)
	if err := cmd.Run(); cmd.ProcessState == nil {
		r.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// roles are those that the plugin prints.
func (r *roleTest) roles(kubeconfig string, args ...string) []role {
	r.Helper()
	code, out, stderr := r.run(kubeconfig, args...)
	if code != 0 {
		r.Fatalf("exit code %d\n%s", code, stderr)
	}
	var list struct{ Items []role }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		r.Fatal(err)
	}
	return list.Items
}

// user makes a user with roles.
func (r *roleTest) user(roles []role) (kubeconfig string) {
	r.Helper()
	r.users++
	name := fmt.Sprintf("%s-%d", r.namespace, r.users)
	var all []any
	for _, role := range roles {
		role.Metadata.Name = name
		binding := map[string]any{
			"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": role.Kind + "Binding", "metadata": role.Metadata,
			"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": role.Kind, "name": name},
			"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": name}},
		}
		all = append(all, role, binding)
		if role.Kind == "ClusterRole" {
			r.Cleanup(func() {
				for _, kind := range []string{"clusterrole", "clusterrolebinding"} {
					_ = exec.Command(server.kubectl, "--kubeconfig", r.admin, "delete", kind, name).Run() // of a server that ends with the tests
				}
			})
		}
	}
	content, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": all})
	if err != nil {
		r.Fatal(err)
	}
	file := filepath.Join(r.dir, name)
	if err := os.WriteFile(file+".json", content, 0o600); err != nil {
		r.Fatal(err)
	}
	r.kubectl("apply", "-f", file+".json")
	if err := clientcmd.WriteToFile(*server.as(name, r.namespace), file); err != nil {
		r.Fatal(err)
	}
	return file
}

// command is one on the policies and the namespace of the test.
func (r *roleTest) command(args []string) []string {
	return append(slices.Clone(args), "-n", r.namespace, "-p", "policies.yaml")
}

// act does what the roles are for.
func (r *roleTest) act(kubeconfig string) (code int, output string) {
	r.Helper()
	if slices.Contains(r.purpose.act, "apply-existing") {
		r.kubectl("replace", "-f", filepath.Join(r.dir, "objects.yaml")) // so that there is something to apply
	}
	code, stdout, stderr := r.run(kubeconfig, r.command(r.purpose.act)...)
	return code, stdout + stderr
}

// eventually tries until the server's authorizer has seen the roles.
func (r *roleTest) eventually(try func() (done bool, why string)) {
	r.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		done, why := try()
		if done {
			return
		}
		if time.Now().After(deadline) {
			r.Errorf("%s", why)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// enough demands that nothing fails and nothing is warned of.
func (r *roleTest) enough(roles []role) {
	r.Helper()
	user := r.user(roles)
	r.eventually(func() (bool, string) {
		code, output := r.act(user)
		refused := strings.Contains(output, "forbidden") || strings.Contains(output, "cannot ")
		for _, args := range r.purpose.also {
			_, stdout, stderr := r.run(user, r.command(args)...)
			refused = refused || strings.Contains(stdout+stderr, "cannot ")
			output += stdout + stderr
		}
		return code == r.purpose.code && !refused, fmt.Sprintf("with all rules: exit code %d, want %d\n%s", code, r.purpose.code, output)
	})
}

// less removes a rule, and demands that its absence is reported.
func (r *roleTest) less(roles []role, i, j int) {
	r.Helper()
	rule := roles[i].Rules[j]
	fewer := slices.Clone(roles)
	fewer[i].Rules = slices.Delete(slices.Clone(roles[i].Rules), j, j+1)
	user := r.user(fewer)
	var others []string // what the user may do, and the authorizer may not have seen yet
	for x := range fewer {
		for _, kept := range fewer[x].Rules {
			others = append(others, kept.Resources...)
		}
	}
	r.eventually(func() (bool, string) {
		code, output := r.act(user)
		for _, resource := range rule.Resources {
			if !strings.Contains(output, resource) || !strings.Contains(output, "cannot ") {
				return false, fmt.Sprintf("without the rule for %v of %s %s: exit code %d, and nothing names %s\n%s", rule.Verbs, roles[i].Kind, resource, code, resource, output)
			}
		}
		for _, resource := range others {
			if !slices.Contains(rule.Resources, resource) && strings.Contains(output, fmt.Sprintf("resource %q", resource)) {
				return false, fmt.Sprintf("without the rule for %v: %s is refused as well\n%s", rule.Resources, resource, output)
			}
		}
		return true, ""
	})
}
