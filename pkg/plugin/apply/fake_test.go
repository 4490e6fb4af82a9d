package apply

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// fakeServer holds one object. It merges what is applied without pruning or
// conflicts, which is all that a Writer's decisions need; the real server is
// tested in test/e2e.
type fakeServer struct {
	t        *testing.T
	live     *unstructured.Unstructured // nil: there is none
	revision int
	types    managedfields.TypeConverter
	fresh    managedfields.TypeConverter // what a refresh gives
	refreshs int
	sent     []cluster.Patch
	writes   int // stored
	// before is called with each request, and may change the object or answer.
	before func(n int, p cluster.Patch) error
	// after is called when a request has been worked on, and may lose the answer.
	after func(n int, p cluster.Patch) error
	// reads counts the GETs, and read may answer in their place.
	reads int
	read  func(n int) (*unstructured.Unstructured, error)
	// admit may change what the server is about to answer.
	admit func(p cluster.Patch, object *unstructured.Unstructured)
}

func newFakeServer(t *testing.T, manifest string) *fakeServer {
	t.Helper()
	s := &fakeServer{t: t, revision: 1}
	s.replace(manifest, "u-1")
	return s
}

// replace puts another object in the place of the one that is there.
func (s *fakeServer) replace(manifest, uid string) {
	s.t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		s.t.Fatal(err)
	}
	s.live = &unstructured.Unstructured{}
	if err := s.live.UnmarshalJSON(text); err != nil {
		s.t.Fatal(err)
	}
	s.live.SetUID(types.UID(uid))
	s.touch()
}

// touch is what any other writer does to the object.
func (s *fakeServer) touch() {
	s.revision++
	s.live = s.live.DeepCopy()
	s.live.SetResourceVersion(strconv.Itoa(s.revision))
}

// set is another writer's change of data.
func (s *fakeServer) set(field, value string) {
	s.touch()
	s.live.Object["data"].(map[string]any)[field] = value
}

func (s *fakeServer) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	s.reads++
	if s.read != nil {
		if u, err := s.read(s.reads); u != nil || err != nil {
			return u, err
		}
	}
	if s.live == nil {
		return nil, apierrors.NewNotFound(configMaps, "c")
	}
	return s.live.DeepCopy(), nil
}

func (s *fakeServer) Types(_ context.Context, _ schema.GroupVersionKind, refresh bool) (managedfields.TypeConverter, error) {
	if refresh {
		s.refreshs++
		s.types = s.fresh
	}
	return s.types, nil
}

func (s *fakeServer) Patch(_ context.Context, _ engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	s.sent = append(s.sent, p)
	if s.before != nil {
		if err := s.before(len(s.sent), p); err != nil {
			return nil, err
		}
	}
	if s.live == nil {
		return nil, apierrors.NewNotFound(configMaps, "c")
	}
	answer, err := s.patched(p)
	if err != nil {
		return nil, err
	}
	if answer.GetResourceVersion() != s.live.GetResourceVersion() || answer.GetUID() != s.live.GetUID() {
		return nil, apierrors.NewConflict(configMaps, "c", http.ErrBodyNotAllowed)
	}
	if s.admit != nil {
		s.admit(p, answer)
	}
	if !p.DryRun {
		s.writes++
		s.live = answer
		s.touch()
		answer = s.live.DeepCopy()
	}
	if s.after != nil {
		if err := s.after(len(s.sent), p); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func (s *fakeServer) patched(p cluster.Patch) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(s.live.Object)
	if err != nil {
		return nil, err
	}
	if p.Type == types.ApplyPatchType {
		text, err = jsonpatch.MergePatch(text, p.Body)
	} else {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(p.Body); err == nil {
			text, err = patch.Apply(text)
		}
	}
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	answer := &unstructured.Unstructured{}
	return answer, answer.UnmarshalJSON(text)
}

// owned gives the object a manager of its data.a.
func (s *fakeServer) owned(manager string, operation metav1.ManagedFieldsOperationType) {
	s.live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`),
	}})
	s.admit = func(_ cluster.Patch, o *unstructured.Unstructured) { o.SetManagedFields(nil) }
}
