package apply_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// server holds ConfigMaps. It publishes no schema, so that it is sent JSON patches,
// and stores nothing of a dry run.
type server struct {
	t *testing.T

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // by name
	// rejects are the names of objects that it takes no dry run of, and fails of those
	// that it takes no write of.
	rejects, fails []string
	writes         []string
	// forbids are the names of objects that the user may not write.
	forbids []string
}

func newServer(t *testing.T, names ...string) *server {
	s := &server{t: t, objects: map[string]*unstructured.Unstructured{}}
	for i, name := range names {
		u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "before"}}}
		u.SetAPIVersion("v1")
		u.SetKind("ConfigMap")
		u.SetNamespace("shop")
		u.SetName(name)
		u.SetUID(types.UID("uid-" + name))
		u.SetResourceVersion(strconv.Itoa(i + 1))
		s.objects[name] = u
	}
	return s
}

func (s *server) Get(_ context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.objects[key.Name]; u != nil {
		return u.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
}

func (s *server) Types(context.Context, schema.GroupVersionKind, bool) (managedfields.TypeConverter, error) {
	return nil, nil
}

func (s *server) Patch(_ context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (p.DryRun && slices.Contains(s.rejects, key.Name)) || (!p.DryRun && slices.Contains(s.fails, key.Name)) {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, key.Name, "no", 0, false)
	}
	patch, err := jsonpatch.DecodePatch(p.Body)
	if err != nil {
		s.t.Errorf("no JSON patch for %s: %v", key.Name, err)
		return nil, err
	}
	text, err := json.Marshal(s.objects[key.Name].Object)
	if err == nil {
		text, err = patch.Apply(text)
	}
	answer := &unstructured.Unstructured{}
	if err == nil {
		err = answer.UnmarshalJSON(text)
	}
	if err != nil || p.DryRun {
		return answer, err
	}
	s.writes = append(s.writes, key.Name)
	answer.SetResourceVersion(answer.GetResourceVersion() + "0")
	s.objects[key.Name] = answer
	return answer.DeepCopy(), nil
}

// Authorize answers whether the user may patch.
func (s *server) Authorize(_ context.Context, r engine.AccessRequest) (engine.AccessDecision, error) {
	return engine.AccessDecision{Allowed: len(s.forbids) == 0 || (r.Name != "" && !slices.Contains(s.forbids, r.Name))}, nil
}
