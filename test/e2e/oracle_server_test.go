package e2e

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
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
