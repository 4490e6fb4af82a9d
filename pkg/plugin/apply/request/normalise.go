package request

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// canonical copies an object as the server will see it: through JSON, so that 2.0 is
// 2, and without the server's bookkeeping.
func canonical(object map[string]any) (map[string]any, error) {
	return roundTrip(diff.WithoutBookkeeping(object))
}

func roundTrip(object map[string]any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var copied map[string]any
	err = utiljson.Unmarshal(text, &copied)
	return copied, err
}

// equal compares canonical values.
func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// checkIdentity returns an error unless both are the same object. A missing uid is put
// back by restoreServerOwned; a different one is another object.
func checkIdentity(live, after *unstructured.Unstructured) error {
	for _, f := range []struct{ field, from, to string }{
		{"apiVersion", live.GetAPIVersion(), after.GetAPIVersion()},
		{"kind", live.GetKind(), after.GetKind()},
		{"metadata.name", live.GetName(), after.GetName()},
		{"metadata.namespace", live.GetNamespace(), after.GetNamespace()},
	} {
		if f.from != f.to {
			return fmt.Errorf("%s may not change (from %q to %q)", f.field, f.from, f.to)
		}
	}
	if from, to := live.GetUID(), after.GetUID(); to != "" && from != to {
		return fmt.Errorf("metadata.uid may not change (from %q to %q)", from, to)
	}
	return nil
}

// restoreServerOwned puts back what only the server may set.
func restoreServerOwned(want, live map[string]any) {
	from, _ := live["metadata"].(map[string]any)
	to, ok := want["metadata"].(map[string]any)
	if !ok {
		return
	}
	for _, field := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		if v, ok := from[field]; ok {
			to[field] = v
		} else {
			delete(to, field)
		}
	}
}

// encodeStringData turns the write-only stringData of a Secret into data, as
// the server would. Applied as stringData it would overwrite the data of
// another owner without a conflict and without the ownership. A null is the
// server's empty string.
func encodeStringData(object map[string]any) {
	if object["kind"] != "Secret" || object["apiVersion"] != "v1" {
		return
	}
	plain, ok := object["stringData"].(map[string]any)
	if !ok {
		return
	}
	data, ok := object["data"].(map[string]any)
	if !ok && object["data"] != nil {
		return // malformed: let the server say so
	}
	for _, v := range plain {
		if _, ok := v.(string); !ok && v != nil {
			return
		}
	}
	if data == nil && len(plain) > 0 {
		data = map[string]any{}
		object["data"] = data
	}
	for k, v := range plain {
		text, _ := v.(string)
		data[k] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(object, "stringData")
}

// withoutNulls copies a canonical object without null map entries.
func withoutNulls(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for k, v := range object {
		if v != nil {
			out[k] = nullsRemoved(v)
		}
	}
	return out
}

func nullsRemoved(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return withoutNulls(v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = nullsRemoved(x)
		}
		return out
	}
	return v
}
