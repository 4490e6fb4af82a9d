package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// oracleServer is the API server that knows the answers.
type oracleServer struct {
	config  *rest.Config
	client  dynamic.Interface // the administrator's
	openapi openapi.Client

	mapperMu sync.Mutex
	mapper   *restmapper.DeferredDiscoveryRESTMapper

	madeMu sync.Mutex
	made   []made // in the order of creation
}

// made is what has to be deleted at the end.
type made struct {
	at   dynamic.ResourceInterface
	name string
}

func newOracleServer(t *testing.T) *oracleServer {
	t.Helper()
	config := restConfig(t)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	check(t, err)
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	check(t, err)
	s := &oracleServer{
		config: config, client: client, openapi: disco.OpenAPIV3(),
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco)),
	}
	t.Cleanup(func() {
		for _, m := range slices.Backward(s.made) {
			if err := m.at.Delete(context.Background(), m.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("deleting %s: %v", m.name, err)
			}
		}
	})
	return s
}

// as is a client of the one who sends the objects of a case.
func (s *oracleServer) as(c *oracleCase) (dynamic.Interface, error) {
	if c.User == "" {
		return s.client, nil
	}
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: c.User, Groups: c.Groups}
	return dynamic.NewForConfig(config)
}

// create makes the world and, unless the case is about their creation, the objects.
func (s *oracleServer) create(ctx context.Context, c *oracleCase) error {
	for _, u := range c.world {
		created, err := s.make(ctx, u)
		if err != nil {
			return err
		}
		c.existing = append(c.existing, created)
	}
	for _, u := range c.world {
		if err := s.awaitKind(ctx, u); err != nil {
			return err
		}
	}
	for _, u := range c.objects {
		live, err := s.makeObject(ctx, c, u)
		if err != nil {
			return err
		}
		c.live = append(c.live, live)
	}
	return nil
}

// makeObject makes an object, or has the server only add its defaults to it:
// admission sees an object with them, but without what storage adds.
func (s *oracleServer) makeObject(ctx context.Context, c *oracleCase, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if c.Operation != operationCreate {
		return s.make(ctx, u)
	}
	at, err := s.resource(ctx, s.client, u)
	if err != nil {
		return nil, err
	}
	defaulted, err := at.Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: comparableForm(defaulted)}, nil
}

func (s *oracleServer) make(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	at, err := s.resource(ctx, s.client, u)
	if err != nil {
		return nil, err
	}
	created, err := at.Create(ctx, u, metav1.CreateOptions{FieldManager: "oracle"})
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", titleOf(u), err)
	}
	s.madeMu.Lock()
	defer s.madeMu.Unlock()
	s.made = append(s.made, made{at, u.GetName()})
	return created, nil
}

// resource waits for a kind that has only just been defined.
func (s *oracleServer) resource(ctx context.Context, client dynamic.Interface, u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	var mapping *meta.RESTMapping
	err := poll(ctx, func() (err error) {
		s.mapperMu.Lock()
		defer s.mapperMu.Unlock()
		if mapping, err = s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
			s.mapper.Reset()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource), nil
	}
	return client.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
}

// awaitKind waits until the server serves and describes what a
// CustomResourceDefinition defines.
func (s *oracleServer) awaitKind(ctx context.Context, definition *unstructured.Unstructured) error {
	if definition.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)["name"].(string)
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
		err := poll(ctx, func() error {
			if _, err := s.client.Resource(gvr).List(ctx, metav1.ListOptions{}); err != nil {
				return err
			}
			paths, err := s.openapi.Paths()
			if err == nil && paths["apis/"+group+"/"+version] == nil {
				err = fmt.Errorf("there is no schema of %s", gvr)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// install installs the policies, and binds them where the case does not:
// kubectl-mutate takes policies from files without a binding for bound.
func (s *oracleServer) install(ctx context.Context, c *oracleCase) error {
	var bound []*unstructured.Unstructured
	for _, u := range c.policies {
		u := u.DeepCopy()
		u.SetAPIVersion(policyGroup + "/v1") // the one that the server serves
		if _, err := s.make(ctx, u); err != nil {
			c.refusals = append(c.refusals, fmt.Sprintf("%s %s: refused: %v", u.GetKind(), u.GetName(), errors.Unwrap(err)))
			continue
		}
		if u.GetKind() == "MutatingAdmissionPolicy" {
			bound = append(bound, bindingOf(u.GetName()))
		}
	}
	if slices.ContainsFunc(c.policies, func(u *unstructured.Unstructured) bool { return u.GetKind() != "MutatingAdmissionPolicy" }) {
		return nil
	}
	for _, u := range bound {
		if _, err := s.make(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func bindingOf(policy string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": policyGroup + "/v1", "kind": "MutatingAdmissionPolicyBinding",
		"spec": map[string]any{"policyName": policy},
	}}
	u.SetName(policy)
	return u
}

// awaitInstalled waits until the server uses what was installed before: it
// learns of policies, and of bindings, in the order in which they were made, so
// that those made last tell.
func (s *oracleServer) awaitInstalled(ctx context.Context, name string) error {
	c := &oracleCase{policyText: canary, objText: canaryObject}
	c.Operation = operationUpdate
	if err := c.place(name + "-canary"); err != nil {
		return err
	}
	if err := s.create(ctx, c); err != nil {
		return err
	}
	if err := s.install(ctx, c); err != nil {
		return err
	}
	return poll(ctx, func() error {
		if a := s.send(ctx, c, c.live[0], c.live[0]); a.outcome != isChanged {
			return fmt.Errorf("policies do not take effect: %s %s", a.outcome, a.message)
		}
		return nil
	})
}

const canary = `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "canary"},
"spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}]},
"reinvocationPolicy": "Never", "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{data: {\"sings\": \"yes\"}}"}}]}}`

const canaryObject = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "canary", "namespace": "NAMESPACE"}}`

// ask sends an object until the server has read what it needs for an answer.
func (s *oracleServer) ask(ctx context.Context, c *oracleCase, before, object *unstructured.Unstructured) answer {
	var a answer
	_ = poll(ctx, func() error { // the last answer stands, whatever it is
		a = s.send(ctx, c, before, object)
		if premature(a.message) && !premature(c.recorded[recordSection]) {
			return errors.New(a.message)
		}
		return nil
	})
	return a
}

// premature reports whether the server has yet to read a schema, a parameter or a
// permission.
func premature(text string) bool {
	return slices.ContainsFunc([]string{
		"There can be a delay between when CustomResourceDefinitions are created and when they are available",
		"failed to find resource referenced by paramKind", "not yet synced to use for admission", "is forbidden: User",
	}, func(sign string) bool { return strings.Contains(text, sign) })
}

// undecodable is how the server denies what a JSON patch has made of an object,
// and does not say which.
const undecodable = "Internal error occurred: strict decoding error: "

// send returns what the server would store if object were sent to replace before.
func (s *oracleServer) send(ctx context.Context, c *oracleCase, before, object *unstructured.Unstructured) answer {
	client, err := s.as(c)
	if err != nil {
		return answer{outcome: isRefused, message: err.Error()}
	}
	at, err := s.resource(ctx, client, object)
	if err != nil {
		return answer{outcome: isRefused, message: err.Error()}
	}
	object = object.DeepCopy() // a report leaves out what the server counts
	object.SetResourceVersion(before.GetResourceVersion())
	var after *unstructured.Unstructured
	dryRun := []string{metav1.DryRunAll}
	if c.Operation == operationCreate {
		after, err = at.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun, FieldManager: "oracle"})
	} else {
		after, err = at.Update(ctx, object, metav1.UpdateOptions{DryRun: dryRun, FieldManager: "oracle"})
	}
	switch {
	case err == nil:
		return verdictOn(before, after)
	case strings.Contains(err.Error(), "denied request: "), strings.Contains(err.Error(), undecodable):
		return answer{outcome: isDenied, message: err.Error()}
	default:
		return answer{outcome: isRefused, message: err.Error()}
	}
}

// poll tries again until there is no error, or a minute has passed.
func poll(ctx context.Context, try func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// oraclePlugin is kubectl-mutate.
type oraclePlugin struct{ program, dir, kubeconfig string }

func newOraclePlugin(dir string) (*oraclePlugin, error) {
	p := &oraclePlugin{
		program: filepath.Join(dir, "kubectl-mutate"), dir: dir,
		kubeconfig: filepath.Join(dir, "kubeconfig"),
	}
	return p, clientcmd.WriteToFile(*server.as("", "default"), p.kubeconfig)
}

// prediction is what kubectl-mutate says about a case.
type prediction struct {
	answers  []answer // of the live objects, in their order; what is to be stored has the server's metadata
	refusals []string // of policies
	stderr   string
}

// preview asks about one case, by files of its policies: about the live objects,
// or about manifests where the case is about their creation.
func (p *oraclePlugin) preview(ctx context.Context, c *oracleCase) (prediction, error) {
	dir := filepath.Join(p.dir, c.namespace)
	// A server takes a policy for resources that it does not have.
	args := []string{"-A", "-p", filepath.Join(dir, "policies"), "--operation", c.Operation, "--allow-unknown-kinds=*"}
	if err := writeManifests(filepath.Join(dir, "policies"), c.policies); err != nil {
		return prediction{}, err
	}
	if c.Operation == operationCreate {
		if err := errors.Join(writeManifests(filepath.Join(dir, "objects"), c.live), writeManifests(filepath.Join(dir, "world"), c.existing)); err != nil {
			return prediction{}, err
		}
		args = append(args, "-f", filepath.Join(dir, "objects"), "--world", filepath.Join(dir, "world"))
	}
	if c.User != "" {
		args = append(args, "--request-user", c.User)
	}
	for _, g := range c.Groups {
		args = append(args, "--request-group", g)
	}
	found, stderr, err := p.run(ctx, args...)
	if err != nil {
		return prediction{}, err
	}
	said := prediction{stderr: stderr}
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "error: ") {
			said.refusals = append(said.refusals, strings.TrimSpace(line))
		}
	}
	for _, object := range c.live {
		a, ok := found[titleOf(object)]
		if !ok {
			a = answer{outcome: isUnchanged, object: object}
		}
		said.answers = append(said.answers, a)
		delete(found, titleOf(object))
	}
	for name, a := range found {
		if a.outcome != isUnchanged {
			return said, fmt.Errorf("%s belongs to another case and is %s", name, a.outcome)
		}
	}
	return said, nil
}

// installed asks about all live objects and all installed policies.
func (p *oraclePlugin) installed(ctx context.Context, _ []*oracleCase) (map[string]answer, error) {
	found, _, err := p.run(ctx, "-A", "--from-cluster", "--operation", operationUpdate)
	return found, err
}

// manifests asks about all objects and policies without a cluster.
func (p *oraclePlugin) manifests(ctx context.Context, cases []*oracleCase) (map[string]answer, error) {
	var policies, world, objects []*unstructured.Unstructured
	for _, c := range cases {
		policies, world, objects = slices.Concat(policies, c.policies), slices.Concat(world, c.existing), slices.Concat(objects, c.live)
	}
	dir := filepath.Join(p.dir, "manifests")
	var all []string
	for _, part := range []struct {
		name    string
		objects []*unstructured.Unstructured
	}{{"policies", policies}, {"world", world}, {"objects", objects}} {
		all = append(all, filepath.Join(dir, part.name))
		if err := writeManifests(filepath.Join(dir, part.name), part.objects); err != nil {
			return nil, err
		}
	}
	found, _, err := p.run(ctx, "-p", all[0], "--world", all[1], "-f", all[2], "--operation", operationUpdate)
	return found, err
}

// run is a preview, by the names of the objects in its report.
func (p *oraclePlugin) run(ctx context.Context, args ...string) (map[string]answer, string, error) {
	cmd := exec.CommandContext(ctx, p.program, append([]string{"preview", "-o", "json", "--show-secrets", "--exit-code=false"}, args...)...)
	cmd.Env = []string{"HOME=" + p.dir, "KUBECONFIG=" + p.kubeconfig}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exited *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exited) {
		return nil, "", err
	}
	if strings.Contains(stderr.String(), "goroutine ") {
		return nil, "", fmt.Errorf("kubectl-mutate panics: %s", stderr.String())
	}
	if stdout.Len() == 0 {
		return nil, stderr.String(), nil // no policy compiled
	}
	var report struct {
		Changes []reportedChange `json:"changes"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		return nil, "", fmt.Errorf("%w\n%s%s", err, stdout.String(), stderr.String())
	}
	found := map[string]answer{}
	for _, c := range report.Changes {
		u, a, err := c.answer()
		if err != nil {
			return nil, "", err
		}
		found[titleOf(u)] = a
	}
	return found, stderr.String(), nil
}

// reportedChange is a part of a preview's report.
type reportedChange struct {
	Object struct {
		APIVersion, Kind, Namespace, Name string
	} `json:"object"`
	After json.RawMessage `json:"after"`
	Steps []struct {
		Outcome, Reason string
	} `json:"steps"`
}

// answer returns the object of the change, and what the report says about it.
func (c *reportedChange) answer() (*unstructured.Unstructured, answer, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(c.Object.APIVersion)
	u.SetKind(c.Object.Kind)
	u.SetNamespace(c.Object.Namespace)
	u.SetName(c.Object.Name)
	for _, s := range c.Steps {
		if s.Outcome == isDenied || s.Outcome == "unsupported" {
			return u, answer{outcome: s.Outcome, message: s.Reason}, nil
		}
	}
	if len(c.After) == 0 {
		return u, answer{outcome: isUnchanged}, nil
	}
	after := &unstructured.Unstructured{}
	err := utiljson.Unmarshal(c.After, &after.Object)
	return u, answer{outcome: isChanged, object: after}, err
}

func writeManifests(dir string, objects []*unstructured.Unstructured) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, u := range objects {
		text, err := u.MarshalJSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.json", i)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
