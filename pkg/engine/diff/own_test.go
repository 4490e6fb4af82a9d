package diff_test

import (
	"encoding/json"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// What a change keeps of an object does not keep the text that the object was decoded from.
func TestOwnKeepsNoText(t *testing.T) {
	type text [1 << 10]byte
	whole := new(text)
	copy(whole[:], "name-of-a-field and the rest of the object")
	part := func() string { return unsafe.String(&whole[0], len("name-of-a-field")) }
	name, v := part(), value.NewValueInterface(part())
	p := diff.Partial{
		Before: diff.Part{part(): []any{part(), nil, int64(1), map[string]any(nil), []any(nil)}},
		Fields: []engine.FieldChange{{
			Path: fieldpath.Path{{FieldName: &name}, {Key: &value.FieldList{{Name: part(), Value: v}}}, {Value: &v}, {Index: new(int)}},
			Kind: engine.Replaced, From: map[string]any{part(): part()}, To: part(),
		}},
	}
	before, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	key := engine.ObjectKey{Version: part(), Namespace: part(), Name: part()}
	gone := make(chan struct{})
	runtime.AddCleanup(whole, func(struct{}) { close(gone) }, struct{}{})
	p, key = p.Own(), key.Own()
	name, v, whole = "", nil, nil
	for range 3 {
		runtime.GC()
	}
	select {
	case <-gone:
	default:
		t.Error("the text is still there")
	}
	after, err := json.Marshal(p)
	if d := cmp.Diff(decoded(t, before), decoded(t, after)); err != nil || d != "" || key.Name != "name-of-a-field" || p.After != nil {
		t.Errorf("%v, key %v (-before +after):\n%s", err, key, d)
	}
}

func decoded(t *testing.T, text []byte) (out any) {
	t.Helper()
	if err := utiljson.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
