package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

const (
	jobNamespaces = 40
	fast          = "5000" // requests in a second: the server that the tests start sets no pace
)

// jobObjects are divided among namespaces and Pods.
var jobObjects = tier.Pick(1000, 5000)

// TestJobShardsMakeTheChangesOfOneRun applies printed manifests, and runs what they run as their ServiceAccount:
// one Pod, and several that divide the objects. A Pod that is killed is tried again by its index.
func TestJobShardsMakeTheChangesOfOneRun(t *testing.T) {
	j := newJobTest(t)
	j.objects()
	before := j.state()

	j.apply("1", "--apply", "--max-changes", "5000")
	j.pod(0).mustRun(t)
	whole := j.state()
	if whole == before || !strings.Contains(whole, "marked:yes") || !strings.Contains(whole, "from:"+j.namespace+"-7") || !strings.Contains(whole, "seen:yes") {
		t.Fatalf("one run changed too little:\n%.2000s", whole)
	}
	for _, shards := range []int{3, 16} {
		j.undo()
		if diff := cmp.Diff(before, j.state()); diff != "" {
			t.Fatalf("undo (-before +after):\n%s", diff)
		}
		j.apply(strconv.Itoa(shards), "--apply", "--max-changes", "5000")
		var pods errgroup.Group
		pods.SetLimit(4)
		for i := range shards {
			pods.Go(func() error {
				p := j.pod(i)
				if shards == 3 && i == 1 {
					if err := p.killed(t); err != nil {
						return err
					}
				}
				return p.run(t.Context())
			})
		}
		if err := pods.Wait(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, j.state()); diff != "" {
			t.Errorf("%d shards (-one run +shards):\n%s", shards, diff)
		}
		if shards == 3 {
			j.settled()
		}
	}
}

// jobTest is a namespace for Jobs, and others with their objects.
type jobTest struct {
	*testing.T
	namespace, dir, admin, program string
	client                         dynamic.Interface
	shards                         string
	spec                           corev1.PodSpec // of the Pods
	policies                       map[string]string
}

func newJobTest(t *testing.T) *jobTest {
	config := restConfig(t)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	j := &jobTest{T: t, namespace: newNamespace(t), dir: t.TempDir(), client: client}
	if err := os.Chmod(j.dir, 0o755); err != nil { // other users run programs in it
		t.Fatal(err)
	}
	j.admin, j.program = filepath.Join(j.dir, "admin"), filepath.Join(j.dir, "kubectl-mutate")
	if err := clientcmd.WriteToFile(*server.as("", j.namespace), j.admin); err != nil {
		t.Fatal(err)
	}
	if err := buildPlugin(j.dir); err != nil {
		t.Fatal(err)
	}
	policies, err := os.ReadFile("testdata/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	j.write("policies.yaml", bytes.ReplaceAll(policies, []byte("PREFIX"), []byte(j.namespace)))
	j.kubectl("label", "namespace", j.namespace, "pod-security.kubernetes.io/enforce=restricted")
	return j
}

func (j *jobTest) write(name string, content []byte) string {
	j.Helper()
	path := filepath.Join(j.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // other users read it
		j.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil { // other users read it
		j.Fatal(err)
	}
	return path
}

func (j *jobTest) command(stdin io.Reader, program string, args ...string) []byte {
	j.Helper()
	return j.ends(0, stdin, program, args...)
}

// exits runs the plugin, and demands an exit code.
func (j *jobTest) exits(code int, args ...string) []byte {
	j.Helper()
	return j.ends(code, nil, j.program, args...)
}

func (j *jobTest) ends(code int, stdin io.Reader, program string, args ...string) []byte {
	j.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(j.Context(), program, append(args, "--kubeconfig", j.admin)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	cmd.Env = append(os.Environ(), "HOME="+j.dir, "XDG_STATE_HOME="+filepath.Join(j.dir, "state"))
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		j.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return out.Bytes()
}

func (j *jobTest) kubectl(args ...string) []byte {
	j.Helper()
	return j.command(nil, server.kubectl, args...)
}

// objects makes the namespaces and their ConfigMaps.
func (j *jobTest) objects() {
	j.Helper()
	var work errgroup.Group
	work.SetLimit(8)
	for i := range jobNamespaces {
		name := fmt.Sprintf("%s-%d", j.namespace, i)
		if _, err := createNamespace(j.Context(), j.client, map[string]any{"name": name, "labels": map[string]any{"job-test": j.namespace}}); err != nil {
			j.Fatal(err)
		}
		j.Cleanup(func() {
			err := core(j.client, "configmaps").Namespace(name).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
			if err == nil {
				err = deleteNamespace(context.Background(), j.client, name)
			}
			if err != nil {
				j.Errorf("deleting namespace %s: %v", name, err)
			}
		})
		names := []string{"trigger", "target", "gathered"}
		for n := len(names); n < jobObjects/jobNamespaces; n++ {
			names = append(names, fmt.Sprintf("object-%d", n))
		}
		for _, object := range names {
			work.Go(func() error {
				_, err := core(j.client, "configmaps").Namespace(name).Create(j.Context(), &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": object}, "data": map[string]any{"n": "1"},
				}}, metav1.CreateOptions{})
				return err
			})
		}
	}
	if err := work.Wait(); err != nil {
		j.Fatal(err)
	}
}

// state is what rules change of the objects.
func (j *jobTest) state() string {
	j.Helper()
	var b strings.Builder
	list, err := core(j.client, "configmaps").List(j.Context(), metav1.ListOptions{})
	if err != nil {
		j.Fatal(err)
	}
	for i := range list.Items {
		if u := &list.Items[i]; strings.HasPrefix(u.GetNamespace(), j.namespace+"-") {
			fmt.Fprintln(&b, u.GetNamespace(), u.GetName(), u.Object["data"])
		}
	}
	namespaces, err := core(j.client, "namespaces").List(j.Context(), metav1.ListOptions{LabelSelector: "job-test=" + j.namespace})
	if err != nil {
		j.Fatal(err)
	}
	for i := range namespaces.Items {
		fmt.Fprintln(&b, namespaces.Items[i].GetName(), namespaces.Items[i].GetLabels())
	}
	return b.String()
}

// apply prints the manifests, has the server take them with strict validation, and a Pod of them under the Pod Security
// Standard of the namespace.
func (j *jobTest) apply(shards string, flags ...string) {
	j.Helper()
	j.shards = shards
	args := []string{
		"job", "-p", filepath.Join(j.dir, "policies.yaml"), "--shards", shards,
		"--kube-api-qps", fast, "--kube-api-burst", fast,
		"--name", "shards-" + shards, "--image", "registry.example/kubectl-mutate:test", "-n", j.namespace,
	}
	args = append(args, flags...)
	printed := j.command(nil, j.program, args...)
	if again := j.command(nil, j.program, args...); !bytes.Equal(printed, again) {
		j.Fatalf("the same command prints something else:\n%s", cmp.Diff(string(printed), string(again)))
	}
	j.command(bytes.NewReader(printed), server.kubectl, "apply", "--validate=strict", "-f", "-")
	var job batchv1.Job
	if err := json.Unmarshal(j.kubectl("get", "job", "shards-"+shards, "-o", "json"), &job); err != nil {
		j.Fatal(err)
	}
	j.spec = job.Spec.Template.Spec
	pod, err := json.Marshal(corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "shards-" + shards, Namespace: j.namespace}, Spec: j.spec,
	})
	if err != nil {
		j.Fatal(err)
	}
	j.command(bytes.NewReader(pod), server.kubectl, "create", "-f", "-")

	var maps corev1.ConfigMapList
	if err := json.Unmarshal(j.kubectl("get", "configmaps", "-l", "app.kubernetes.io/instance=shards-"+shards, "-o", "json"), &maps); err != nil {
		j.Fatal(err)
	}
	j.policies = map[string]string{}
	for i := range maps.Items {
		for name, text := range maps.Items[i].Data {
			j.policies[name] = text
		}
	}
}

// undo takes back what the last Job wrote, by the journals on its volume.
func (j *jobTest) undo() {
	j.Helper()
	journals, err := filepath.Glob(filepath.Join(j.dir, "pod-"+j.shards+"-*", "records", "kubectl-mutate", "*.jsonl"))
	if err != nil || len(journals) == 0 {
		j.Fatalf("there is no journal: %v", err)
	}
	for _, path := range journals {
		content, err := os.ReadFile(path)
		if err != nil {
			j.Fatal(err)
		}
		mine := filepath.Join(j.dir, filepath.Base(path))
		if err := os.WriteFile(mine, content, 0o600); err != nil {
			j.Fatal(err)
		}
		j.command(nil, j.program, "undo", mine, "--yes", "--max-changes", "0", "--kube-api-qps", fast, "--kube-api-burst", fast)
	}
}

// settled demands that nothing is left to do.
func (j *jobTest) settled() {
	j.Helper()
	j.command(nil, j.program, "preview", "-A", "-p", filepath.Join(j.dir, "policies.yaml"), "-o", "name")
}

// pod is what the kubelet makes of one Pod: a root with nothing in it but the program and what is mounted, the variables of
// the container, and its user.
type pod struct {
	root string
	args []string
	env  []string
	out  bytes.Buffer
}

func (j *jobTest) pod(index int) *pod {
	j.Helper()
	c := &j.spec.Containers[0]
	root := fmt.Sprintf("pod-%s-%d", j.shards, index)
	p := &pod{root: filepath.Join(j.dir, root)}
	endpoint, err := url.Parse(server.config.Clusters[server.config.Contexts[server.config.CurrentContext].Cluster].Server)
	if err != nil {
		j.Fatal(err)
	}
	host, port, err := net.SplitHostPort(endpoint.Host)
	if err != nil {
		j.Fatal(err)
	}
	p.env = []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "JOB_COMPLETION_INDEX=" + strconv.Itoa(index)}
	for _, e := range c.Env {
		p.env = append(p.env, e.Name+"="+e.Value)
	}
	for _, arg := range append(append([]string{}, c.Command...), c.Args...) {
		p.args = append(p.args, strings.ReplaceAll(strings.ReplaceAll(arg, "$(JOB_COMPLETION_INDEX)", strconv.Itoa(index)), "$$", "$"))
	}
	if err := os.MkdirAll(p.root, 0o755); err != nil { // other users run programs in it
		j.Fatal(err)
	}
	if err := os.Link(j.program, filepath.Join(p.root, "kubectl-mutate")); err != nil {
		j.Fatal(err)
	}
	account := root + "/var/run/secrets/kubernetes.io/serviceaccount/"
	token := j.kubectl("create", "token", j.spec.ServiceAccountName, "-n", j.namespace)
	j.write(account+"token", bytes.TrimSpace(token))
	j.write(account+"namespace", []byte(j.namespace))
	j.write(account+"ca.crt", server.config.Clusters[server.config.Contexts[server.config.CurrentContext].Cluster].CertificateAuthorityData)
	for name, text := range j.policies { // links to links, as the kubelet makes them
		j.write(root+"/policies/..2026_01_01/"+name, []byte(text))
		if err := os.Symlink("..data/"+name, filepath.Join(p.root, "policies", name)); err != nil {
			j.Fatal(err)
		}
	}
	if err := os.Symlink("..2026_01_01", filepath.Join(p.root, "policies", "..data")); err != nil {
		j.Fatal(err)
	}
	for _, dir := range []string{"tmp", "records"} {
		if err := os.MkdirAll(filepath.Join(p.root, dir), 0o755); err != nil { // as a volume
			j.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(p.root, dir), 0o777); err != nil { // as a volume with a group of its own
			j.Fatal(err)
		}
	}
	return p
}

func (p *pod) start(ctx context.Context) (*exec.Cmd, error) {
	user := uint32(65532)
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	cmd.Path, cmd.Err, cmd.Dir, cmd.Env = p.args[0], nil, "/", p.env
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root, Credential: &syscall.Credential{Uid: user, Gid: user}}
	return cmd, cmd.Start()
}

func (p *pod) run(ctx context.Context) error {
	cmd, err := p.start(ctx)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(p.args, " "), err, p.out.String())
	}
	return nil
}

func (p *pod) mustRun(t *testing.T) {
	t.Helper()
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// killed runs the Pod, and kills it when it has written some objects.
func (p *pod) killed(t *testing.T) error {
	cmd, err := p.start(t.Context())
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for wrote := 0; wrote < 5; {
		select {
		case err := <-ended:
			return fmt.Errorf("it ended before it was killed: %w\n%s", err, p.out.String())
		case <-time.After(time.Millisecond):
		}
		journals, _ := filepath.Glob(filepath.Join(p.root, "records", "kubectl-mutate", "*.jsonl"))
		for _, path := range journals {
			if content, err := os.ReadFile(path); err == nil {
				wrote = bytes.Count(content, []byte(`{"result"`))
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	if err := <-ended; err == nil {
		return fmt.Errorf("it ended before it was killed:\n%s", p.out.String())
	}
	p.out.Reset()
	return nil
}

// TestJobKeepsReports runs what a printed Job runs to keep reports, in three shards. Its ServiceAccount may write these, and
// nothing else.
func TestJobKeepsReports(t *testing.T) {
	j := newJobTest(t)
	definitions, err := os.ReadFile("testdata/docs/in-cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	j.command(bytes.NewReader(definitions), server.kubectl, "apply", "--server-side", "-f", "-")
	j.kubectl("wait", "--for=condition=Established", "crd/policyreports.wgpolicyk8s.io", "crd/clusterpolicyreports.wgpolicyk8s.io")
	for i := range 6 {
		name := fmt.Sprintf("%s-%d", j.namespace, i)
		if _, err := createNamespace(j.Context(), j.client, map[string]any{"name": name}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = deleteNamespace(context.Background(), j.client, name) }) // the plane ends anyway
		j.kubectl("create", "configmap", "trigger", "-n", name)
		j.kubectl("create", "configmap", "object-10", "-n", name)
	}
	set := "policyreport=" + j.namespace
	j.kubectl("create", "configmap", "gathered", "-n", j.namespace+"-3")
	j.apply("3", "--write-reports", set)
	for i := range 3 {
		j.pod(i).mustRun(t)
	}
	out := string(j.exits(1, "summary", "--write-reports", set))
	for _, want := range []string{"job-own/mark +6 ", "job-own/ready +6 ", "job-own/label-namespace +6 ", "job-others/gather +1 ", "19 objects with a report"} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	allowed := string(j.kubectl("auth", "can-i", "--list", "-n", j.namespace, "--as", "system:serviceaccount:"+j.namespace+":shards-3"))
	for line := range strings.SplitSeq(allowed, "\n") {
		if regexp.MustCompile(`patch|create|delete|update`).MatchString(line) && !strings.Contains(line, "reports.wgpolicyk8s.io") && !strings.Contains(line, "self") {
			t.Errorf("the ServiceAccount may write: %s", line)
		}
	}
}
