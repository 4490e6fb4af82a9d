package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

func paths(fields []engine.FieldChange) []string {
	var out []string
	for _, f := range fields {
		out = append(out, string(f.Kind)+" "+engine.PathString(f.Path))
	}
	return out
}

// What is compared is each value, in elements of lists too; what is put back is an
// element as a whole.
func TestLeavesAndUnits(t *testing.T) {
	change := diff.Between(
		object(t, "{kind: Thing, gone: {a: 1, b: {}}, parts: [{name: x, v: {w: 1}}]}"),
		object(t, "{kind: Thing, new: {a: 1, b: {c: [1]}}, parts: [{name: b, v: {w: 1}}], args: [{a: 1}]}"),
		diff.Type{},
	)
	if d := cmp.Diff([]string{
		"added args",
		"removed gone.a", "removed gone.b",
		"added new.a", "added new.b.c",
		"removed parts[x].name", "removed parts[x].v.w",
		"added parts[b].name", "added parts[b].v.w",
	}, paths(change.Leaves())); d != "" {
		t.Errorf("leaves (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{
		"added args",
		"removed gone.a", "removed gone.b",
		"added new.a", "added new.b.c",
		"removed parts[x]", "added parts[b]",
	}, paths(change.Units())); d != "" {
		t.Errorf("units (-want +got):\n%s", d)
	}
	change.Fields[1].Withheld = true
	if got := paths(change.Leaves())[1]; got != "removed gone" {
		t.Errorf("a withheld field is a leaf, got %s", got)
	}
}

// Drift is a value of the change that is another one now, and nothing that others,
// or the server's defaults, have put beside it.
func TestDrift(t *testing.T) {
	change := diff.Between(
		object(t, "{kind: Thing, size: 1, gone: {a: 1}, parts: [{name: x}]}"),
		object(t, "{kind: Thing, size: 2, labels: {a: b}, parts: [{name: x}, {name: b, image: i}]}"),
		diff.Type{},
	)
	for _, tt := range []struct {
		name, live string
		want       []string
	}{
		{"as it was changed", "{size: 2, labels: {a: b}, parts: [{name: x}, {name: b, image: i}]}", nil},
		{"with more beside it", "{size: 2, more: 1, labels: {a: b, c: d}, parts: [{name: z}, {name: b, image: i, policy: Always}, {name: x, v: 1}]}", nil},
		{"an explicit null", "{size: 2, gone: null, labels: {a: b}, parts: [{name: b, image: i}]}", nil},
		{"another value in an added element", "{size: 2, labels: {a: b}, parts: [{name: b, image: j}]}", []string{"parts[b].image"}},
		{"without the added element", "{size: 2, labels: {a: b}, parts: [{name: x}]}", []string{"parts[b].image", "parts[b].name"}},
		{"another value", "{size: 3, labels: {a: c}, parts: [{name: b, image: i}]}", []string{"labels.a", "size"}},
		{"what was removed is back", "{size: 2, gone: {a: 1}, labels: {a: b}, parts: [{name: b, image: i}]}", []string{"gone.a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range change.Drift(object(t, "{kind: Thing, "+tt.live[1:]).Object) {
				got = append(got, engine.PathString(p))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestUnlike(t *testing.T) {
	of := func(after string) diff.Partial {
		return diff.Between(object(t, "{kind: Thing, size: 1}"), object(t, "{kind: Thing, "+after[1:]), diff.Type{})
	}
	planned := of("{size: 2, labels: {a: b}, parts: [{name: x, v: 1}]}")
	for _, tt := range []struct {
		name, after string
		want        []string
	}{
		{"the same", "{size: 2, labels: {a: b}, parts: [{name: x, v: 1}]}", nil},
		{"other values", "{size: 3, labels: {a: c}, parts: [{name: x, v: 1}]}", []string{"labels.a", "size"}},
		{"more and less", "{size: 2, labels: {a: b, c: d}}", []string{"labels.c", "parts"}},
		{"another kind of change", "{labels: {a: b}, parts: [{name: x, v: 1}]}", []string{"size"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, pair := range [][2]diff.Partial{{planned, of(tt.after)}, {of(tt.after), planned}} {
				var got []string
				for _, p := range pair[0].Unlike(pair[1]) {
					got = append(got, engine.PathString(p))
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
		})
	}
}
