package request

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Class is a kind of difference between the server's response and the wanted object.
type Class string

// The classes, from harmless to harmful. Only the last three are shown to the user.
const (
	// Defaulted: the server only added something.
	Defaulted Class = "defaults added"
	// Emptied: a null, an empty map or list, or a Go type's zero value is not stored.
	Emptied Class = "empty value dropped"
	// Normalised: the value is the canonical form of ours ("1000m" is "1").
	Normalised Class = "normalised"
	// Overridden: the server set another value than ours.
	Overridden Class = "overridden"
	// Refused: the server ignored a part of the request.
	Refused Class = "refused"
	// Lost: a live field that should have stayed is missing.
	Lost Class = "lost"
)

// Expected reports whether every server makes such a difference.
func (c Class) Expected() bool { return c == Defaulted || c == Emptied || c == Normalised }

// Finding is a field that differs in the response.
type Finding struct {
	Class Class
	Path  fieldpath.Path // list elements by index in the wanted object
}

// Difference lists the differences of a response from the wanted object, in path order.
type Difference []Finding

// Of returns the findings of some classes.
func (d Difference) Of(classes ...Class) Difference {
	return slices.DeleteFunc(slices.Clone(d), func(f Finding) bool { return !slices.Contains(classes, f.Class) })
}

// Expected reports whether every server makes such differences, which are then not shown.
func (d Difference) Expected() bool { return len(d.Of(Overridden, Refused, Lost)) == 0 }

// Paths returns the fields, without their values, for messages.
func (d Difference) Paths() []string {
	out := make([]string, len(d))
	for i, f := range d {
		out[i] = engine.PathString(f.Path)
	}
	return out
}

// Shown returns the findings with their fields as a function shows them.
func (d Difference) Shown(path func(fieldpath.Path) fieldpath.Path) Difference {
	out := slices.Clone(d)
	for i := range out {
		out[i].Path = path(out[i].Path)
	}
	return out
}

// Answer is the result of comparing a server's answer, to the dry run or the write.
type Answer struct {
	// Difference from the plan.
	Difference Difference
	// AsWanted is set if there is no difference.
	AsWanted bool
	// Unchanged is set if the response is the live object: the write would change nothing, because the live
	// object is the server's form of the wanted one, or because the server keeps its value.
	Unchanged bool
}

// Classify compares the response to a request with the live object and the plan.
func Classify(plan Request, answer *unstructured.Unstructured) Answer {
	got := diff.WithoutBookkeeping(answer.Object)
	out := Answer{AsWanted: equal(plan.Want.Object, got)}
	live, want := plan.was, plan.Want.Object
	if plan.builtIn() { // null is absent
		live, want, got = withoutNulls(live), withoutNulls(want), withoutNulls(got)
	}
	out.Unchanged = equal(live, got)
	if out.AsWanted {
		return out
	}
	for _, e := range diff.Edits(want, got) {
		out.Difference = append(out.Difference, Finding{Class: plan.classOf(e), Path: e.Path})
	}
	return out
}

func (r *Request) builtIn() bool { return diff.BuiltIn(r.Live.GroupVersionKind().Group) }

// classOf classifies one edit from the wanted object to the response.
func (r *Request) classOf(e diff.Edit) Class {
	wanted, _ := diff.Lookup(r.Want.Object, e.Path)
	switch {
	case e.Op == diff.OpAdd:
		return Defaulted
	case e.Op == diff.OpReplace && sameMeaning(wanted, e.Value):
		return Normalised
	case e.Op == diff.OpReplace:
		return Overridden
	case isEmpty(wanted) || r.builtIn() && isZero(wanted):
		return Emptied
	}
	if _, ok := diff.Lookup(r.was, e.Path); ok {
		return Lost
	}
	return Refused
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, x := range v {
			if !isEmpty(x) {
				return false
			}
		}
		return true
	}
	return false
}

// isZero reports whether a Go type with `omitempty` omits the value.
func isZero(v any) bool { return v == false || v == "" || v == int64(0) || v == float64(0) }

// sameMeaning reports whether a server's value is the canonical form of ours. A null
// asks for the default, which may be any value.
func sameMeaning(ours, server any) bool {
	if ours == nil {
		return true
	}
	got, ok := server.(string)
	if !ok {
		return false
	}
	want := fmt.Sprint(ours)
	timeOf := func(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }
	return alike(want, got, resource.ParseQuantity, func(x, y resource.Quantity) bool {
		return x.Cmp(y) == 0
	}) ||
		alike(want, got, timeOf, func(x, y time.Time) bool { return x.Truncate(time.Second).Equal(y) }) ||
		alike(want, got, time.ParseDuration, func(x, y time.Duration) bool { return x == y }) ||
		// which ignores the unused bits of the last character, like the server
		alike(want, got, base64.StdEncoding.DecodeString, bytes.Equal)
}

// alike reports whether two strings are forms of the same value.
func alike[T any](a, b string, parse func(string) (T, error), same func(x, y T) bool) bool {
	x, errX := parse(a)
	y, errY := parse(b)
	return errX == nil && errY == nil && same(x, y)
}

// roundTrip copies an object as the server will see it: through JSON, so that 2.0 is 2.
func roundTrip(object map[string]any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var copied map[string]any
	err = utiljson.Unmarshal(text, &copied)
	return copied, err
}

// equal compares values in the server's form.
func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// checkIdentity returns an error unless both are the same object. A missing uid is accepted, and restored by
// restoreServerOwned.
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

// restoreServerOwned restores the fields that only the server may set.
func restoreServerOwned(want, live map[string]any) {
	from, _ := live["metadata"].(map[string]any)
	to, ok := want["metadata"].(map[string]any)
	if !ok {
		return
	}
	for _, field := range []string{
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
	} {
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

// withoutNulls copies an object without null map entries.
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
