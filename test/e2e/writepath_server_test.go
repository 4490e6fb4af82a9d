package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// writePathServer is the plugin's own client of the server. It also shows what
// it is asked, and lets a test hold on to an old schema.
type writePathServer struct {
	config  *rest.Config
	plugin  *cluster.Client
	client  dynamic.Interface // of the other users
	openapi openapi.Client
	known   map[schema.GroupVersionKind]knownSchema
	answer  *unstructured.Unstructured // to the last dry run
	// unforced says whom the server itself names when the last apply is rehearsed
	// without force: the causes of its 409.
	unforced []string
}

// knownSchema is what the writer knows of a kind, and the document that says so.
type knownSchema struct {
	types managedfields.TypeConverter
	text  []byte // only of the test's own kinds
}

func newWritePathServer(t *testing.T) *writePathServer {
	t.Helper()
	config := restConfig(t)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	check(t, err)
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	check(t, err)
	s := &writePathServer{config: config, client: client, openapi: disco.OpenAPIV3(), known: map[schema.GroupVersionKind]knownSchema{}}
	check(t, s.connect())
	return s
}

// connect is what a new run of the plugin does: nothing is known of the server.
func (s *writePathServer) connect() error {
	disco, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		return err
	}
	cached := memory.NewMemCacheClient(disco)
	flags := genericclioptions.NewTestConfigFlags().
		WithClientConfig(clientcmd.NewDefaultClientConfig(*server.config.DeepCopy(), nil)).
		WithDiscoveryClient(cached).
		WithRESTMapper(restmapper.NewDeferredDiscoveryRESTMapper(cached))
	const noLimit = 10_000
	s.plugin, err = cluster.New(flags, cluster.Options{QPS: noLimit, Burst: noLimit})
	s.forget()
	return err
}

func (s *writePathServer) resource(key engine.ObjectKey) dynamic.ResourceInterface {
	plural := strings.ToLower(key.Kind) + "s"
	switch key.Kind {
	case "Ingress":
		plural = "ingresses"
	case "NetworkPolicy":
		plural = "networkpolicies"
	case "MutatingAdmissionPolicy":
		plural = "mutatingadmissionpolicies"
	}
	r := s.client.Resource(schema.GroupVersionResource{Group: key.Group, Version: key.Version, Resource: plural})
	if key.Namespace == "" {
		return r
	}
	return r.Namespace(key.Namespace)
}

func subresources(key engine.ObjectKey) []string {
	if key.Subresource == "" {
		return nil
	}
	return []string{key.Subresource}
}

// Get implements apply.Server.
func (s *writePathServer) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	return s.plugin.Get(ctx, key)
}

// Patch implements apply.Server.
func (s *writePathServer) Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	if !p.DryRun {
		return s.plugin.Patch(ctx, key, p)
	}
	if p.Force {
		unforced := p
		unforced.Force = false
		_, err := s.plugin.Patch(ctx, key, unforced)
		s.unforced = conflictCauses(err)
	}
	answer, err := s.plugin.Patch(ctx, key, p)
	s.answer = answer
	return answer, err
}

// Types implements apply.Server.
func (s *writePathServer) Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (managedfields.TypeConverter, error) {
	if k, ok := s.known[gvk]; ok && !refresh {
		return k.types, nil
	}
	var k knownSchema
	var err error
	if k.types, err = s.plugin.Types(ctx, gvk, true); err != nil {
		return nil, err
	}
	if gvk.Group == testGroup {
		k.text, err = s.document(gvk.GroupVersion())
	}
	s.known[gvk] = k
	return k.types, err
}

func (s *writePathServer) document(gv schema.GroupVersion) ([]byte, error) {
	paths, err := s.openapi.Paths()
	if err != nil {
		return nil, err
	}
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	path, ok := paths[name]
	if !ok {
		return nil, fmt.Errorf("the server publishes no %s", name)
	}
	return path.Schema("application/json")
}

// forget drops what is known of the test's own schemas.
func (s *writePathServer) forget() {
	for gvk := range s.known {
		if gvk.Group == testGroup {
			delete(s.known, gvk)
		}
	}
}

// awaitSchema waits until the published schema of the test's group is another
// than before and knows the kind. It is published shortly after the
// CustomResourceDefinition is stored, and served shortly after that.
func (s *writePathServer) awaitSchema(kind string, before []byte) error {
	const settle = 500 * time.Millisecond
	for range 200 {
		now, err := s.document(schema.GroupVersion{Group: testGroup, Version: "v1"})
		if err == nil && bytes.Contains(now, []byte(`"`+kind+`"`)) && !bytes.Equal(now, before) {
			time.Sleep(settle)
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the schema of " + kind + " was not published")
}

// create stores manifests under a manager's name.
func (s *writePathServer) create(ctx context.Context, manager string, manifests ...string) error {
	for _, m := range manifests {
		object, err := parse(m)
		if err != nil {
			return err
		}
		if _, err := s.resource(engine.KeyOf(object)).Create(ctx, object, metav1.CreateOptions{FieldManager: manager}); err != nil {
			return err
		}
	}
	return nil
}

// applyAs is what a GitOps controller does.
func (s *writePathServer) applyAs(ctx context.Context, manager, manifest string, force bool) error {
	object, err := parse(manifest)
	if err != nil {
		return err
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = s.resource(engine.KeyOf(object)).Patch(ctx, object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}

// patchAs is what another user does.
func (s *writePathServer) patchAs(ctx context.Context, manager string, key engine.ObjectKey, t types.PatchType, body string) error {
	_, err := s.resource(key).Patch(ctx, key.Name, t, []byte(body), metav1.PatchOptions{FieldManager: manager}, subresources(key)...)
	return err
}

func parse(manifest string) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(text)
}
