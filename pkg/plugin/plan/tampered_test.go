package plan_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

const (
	tamperedBefore = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, finalizers: [example.com/one]}, data: {level: debug, old: "1"}, list: [{name: x, n: 1}, {name: y, n: 2}]}`
	tamperedAfter  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, finalizers: [example.com/one, example.com/two]}, data: {level: info, new: {b: [1, 2]}}, list: [{name: x, n: 1}, {name: y, n: 3}]}`
)

// FuzzTamperedEntry changes one value of an entry as it stands in a plan. Whatever it is, an entry that is
// valid and has not drifted shows each field that would be written, from its value and to its value.
func FuzzTamperedEntry(f *testing.F) {
	for n := range 200 {
		for _, value := range []string{`null`, `"evil"`, `7`, `""`, `true`, `[]`, `{}`, `{"evil": 1}`, `["f:data", "f:evil"]`} {
			f.Add(uint(n), value)
		}
	}
	now := change(object(f, tamperedBefore), object(f, tamperedAfter))
	original, err := json.Marshal(plan.NewEntry(&now).Masked())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, n uint, text string) {
		var value, entry any
		if json.Unmarshal([]byte(text), &value) != nil {
			t.Skip("not JSON")
		}
		if err := json.Unmarshal(original, &entry); err != nil {
			t.Fatal(err)
		}
		n++
		entry = replaced(entry, &n, value)
		tampered, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		var e plan.Entry
		if json.Unmarshal(tampered, &e) != nil || e.Validate() != nil || e.Drift(&now) != nil {
			return
		}
		for _, f := range now.Fields {
			from, _ := diff.Lookup(map[string]any(e.Before), f.Path)
			to, _ := diff.Lookup(map[string]any(e.After), f.Path)
			if !same(from, f.From) || !same(to, f.To) {
				t.Errorf("%s changes from %v to %v, and the plan shows %v and %v:\n%s", f.Path, f.From, f.To, from, to, tampered)
			}
		}
	})
}

// same compares values as JSON, which knows one kind of numbers.
func same(a, b any) bool {
	var values [2]any
	for i, v := range []any{a, b} {
		text, err := json.Marshal(v)
		if err != nil || json.Unmarshal(text, &values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// replaced replaces the nth value of a JSON value, counted in depth and by the order of keys, by another one.
func replaced(v any, n *uint, by any) any {
	if *n--; *n == 0 {
		return by
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = replaced(v[k], n, by)
		}
	case []any:
		for i := range v {
			v[i] = replaced(v[i], n, by)
		}
	}
	return v
}
