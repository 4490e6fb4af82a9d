// Package redact prepares strings and objects for output: it masks Secrets, escapes characters that a
// terminal or a CI runner would act on, and reduces server errors to what is safe to show.
//
// All of data, stringData and the last-applied-configuration annotation of a Secret is masked. Values that
// policies derive from Secrets are left out before, by their origin: printers get engine.Change.Shown. The
// length of a value is never shown.
package redact

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// The suffixes of the masks of values that differ, in the words of kubectl diff.
const (
	beforeSuffix = " (before)"
	afterSuffix  = " (after)"
)

// Change returns a change as it may be shown: without values derived from Secrets, and without those of a
// Secret itself.
func Change(c *engine.Change) *engine.Change {
	c = c.ToShow()
	if !engine.IsSecret(c.Before) && !engine.IsSecret(c.After) {
		return c
	}
	out := *c
	out.Before, out.After = hiddenStates(c.Before, c.After)
	out.Target = engine.Target{Key: c.Target.Key, Object: out.Before, Origin: c.Target.Origin}
	out.Fields, out.Steps = slices.Clone(c.Fields), slices.Clone(c.Steps)
	states := diff.Partial{Before: partOf(out.Before), After: partOf(out.After)}
	for i := range out.Fields {
		if f := &out.Fields[i]; f.Kind != engine.Moved {
			f.From, f.To = states.Contents(*f)
		}
	}
	for i := range out.Steps {
		out.Steps[i].After = nil
	}
	return &out
}

// hiddenStates masks two states of a Secret, either of which may be nil. The masks of different values
// differ.
func hiddenStates(from, to *unstructured.Unstructured) (a, b *unstructured.Unstructured) {
	a, b = engine.HideObject(from), engine.HideObject(to)
	if a == nil || b == nil {
		return a, b
	}
	x, y := toldApart(from.Object, to.Object, a.Object, b.Object)
	return object(x), object(y)
}

func object(v any) *unstructured.Unstructured {
	fields, _ := v.(map[string]any)
	return &unstructured.Unstructured{Object: fields}
}

// toldApart returns two masked values, with different masks where the values from and to differ.
func toldApart(from, to, a, b any) (any, any) {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	switch {
	case a == engine.HiddenValue && b == engine.HiddenValue && !diff.Same(from, to):
		return engine.HiddenValue + beforeSuffix, engine.HiddenValue + afterSuffix
	case !isMap || !areMaps:
		return a, b
	}
	was, _ := from.(map[string]any)
	is, _ := to.(map[string]any)
	x, y = maps.Clone(x), maps.Clone(y)
	for name := range x {
		if _, both := y[name]; both && !engine.Identical(was[name], is[name]) {
			x[name], y[name] = toldApart(was[name], is[name], x[name], y[name])
		}
	}
	return x, y
}

// Holder returns the state that holds a field: Before if it was removed, else After, and nil without either.
func Holder(c *engine.Change, f *engine.FieldChange) *unstructured.Unstructured {
	if f.Kind == engine.Removed && c.Before != nil || c.After == nil {
		return c.Before
	}
	return c.After
}

// Partial returns a change with secret values masked and their fields Withheld.
func Partial(p diff.Partial, key engine.ObjectKey) diff.Partial {
	if len(p.Fields) == 0 {
		return p
	}
	if p = Hidden(p); !key.IsSecret() {
		return p
	}
	before, after := hiddenStates(p.Before.Object(key), p.After.Object(key))
	out := p.WithStates(diff.PartOf(before), diff.PartOf(after))
	for i := range out.Fields {
		from, to := p.Contents(out.Fields[i])
		shownFrom, shownTo := out.Contents(out.Fields[i])
		out.Fields[i].Withheld = out.Fields[i].Withheld || !diff.Same(from, shownFrom) || !diff.Same(to, shownTo)
	}
	return out
}

// MarkedBy returns a change in which the data of a Secret is marked as Secret, as is every field that
// equals, contains or belongs to one of secrets.
func MarkedBy(secrets []engine.FieldChange, p diff.Partial, key engine.ObjectKey) diff.Partial {
	if key.IsSecret() {
		for _, path := range []fieldpath.Path{
			{fieldName("data")},
			{fieldName("stringData")},
			{fieldName("metadata"), fieldName("annotations"), fieldName(engine.LastApplied)},
		} {
			_, was := diff.Lookup(map[string]any(p.Before), path)
			_, is := diff.Lookup(map[string]any(p.After), path)
			if was || is {
				secrets = append(slices.Clip(secrets), engine.FieldChange{Path: path})
			}
		}
	}
	p.Fields = slices.Clone(p.Fields)
	for i := range p.Fields {
		f := &p.Fields[i]
		for _, s := range secrets {
			n := min(len(s.Path), len(f.Path))
			if !s.Path[:n].Equals(f.Path[:n]) {
				continue
			}
			f.Secret = true
			if s.SecretFrom <= n {
				f.SecretFrom = max(f.SecretFrom, s.SecretFrom)
			}
		}
	}
	return p
}

func fieldName(name string) fieldpath.PathElement { return fieldpath.FieldNameElement(name) }

// Hidden returns a change without the names and values of fields marked as Secret, which become Withheld.
func Hidden(p diff.Partial) diff.Partial { return withoutSecrets(withoutNames(p)) }

// withoutNames returns a change without names derived from a Secret: a map or list with such a name becomes
// one secret field. Such fields of the object itself, or of its metadata, become one field without a name.
func withoutNames(p diff.Partial) diff.Partial {
	var around, outermost []fieldpath.Path
	for _, f := range p.Fields {
		switch {
		case f.SecretFrom == 0:
		case isOutermost(f):
			outermost = append(outermost, f.Path[:f.SecretFrom])
		default:
			around = append(around, f.Path[:f.SecretFrom-1])
		}
	}
	if len(around)+len(outermost) == 0 {
		return p
	}
	around = slices.CompactFunc(around, fieldpath.Path.Equals)
	out := diff.Partial{
		Before: partWithoutNames(p.Before, outermost),
		After:  partWithoutNames(p.After, outermost),
	}
	stand := fieldpath.NewSet() // fields that stand for others
	for _, f := range p.Fields {
		at := slices.IndexFunc(around,
			func(w fieldpath.Path) bool { return len(w) <= len(f.Path) && w.Equals(f.Path[:len(w)]) })
		switch {
		case at >= 0:
			f = fieldForAll(p, f, around[at])
		case f.SecretFrom > 0:
			path := append(slices.Clone(f.Path[:f.SecretFrom-1]), fieldName(engine.HiddenValue))
			f.Path, f.Kind, f.Secret, f.SecretFrom = path, engine.Replaced, true, 0
		default:
			out.Fields = append(out.Fields, f)
			continue
		}
		if !stand.Has(f.Path) {
			stand.Insert(f.Path)
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

// isOutermost reports whether a name derived from a Secret is a field of the object itself or of its
// metadata, which hold what names the object.
func isOutermost(f engine.FieldChange) bool {
	return f.SecretFrom == 1 || f.SecretFrom == 2 && f.Path[0].Equals(fieldName("metadata"))
}

// partWithoutNames returns a part in which one nameless field replaces the outermost fields of the object,
// and another those of its metadata. withoutSecrets masks their values.
func partWithoutNames(p diff.Part, outermost []fieldpath.Path) diff.Part {
	out := diff.Part{}
	maps.Copy(out, p)
	metadata := map[string]any{}
	if was, ok := p["metadata"].(map[string]any); ok {
		maps.Copy(metadata, was)
	}
	for _, path := range outermost {
		in := map[string]any(out)
		if len(path) == 2 {
			in, out["metadata"] = metadata, metadata
		}
		if name := path[len(path)-1].FieldName; name != nil {
			delete(in, *name)
		}
		in[engine.HiddenValue] = ""
	}
	return out
}

// fieldForAll returns the field that stands for all fields below a path.
func fieldForAll(p diff.Partial, f engine.FieldChange, at fieldpath.Path) engine.FieldChange {
	_, was := diff.Lookup(map[string]any(p.Before), at)
	_, is := diff.Lookup(map[string]any(p.After), at)
	f.Path, f.Kind, f.Secret, f.SecretFrom = at, engine.Replaced, true, 0
	switch {
	case !was:
		f.Kind = engine.Added
	case !is:
		f.Kind = engine.Removed
	}
	return f
}

// withoutSecrets returns a change without values derived from a Secret.
func withoutSecrets(p diff.Partial) diff.Partial {
	was, is := map[string]any(p.Before), map[string]any(p.After)
	before, after := any(was), any(is)
	fields := slices.Clone(p.Fields)
	for i := range fields {
		f := &fields[i]
		if !f.Secret {
			continue
		}
		f.Secret, f.Withheld = false, true
		from, to := engine.HiddenValue, engine.HiddenValue
		if f.Kind == engine.Replaced {
			from, to = from+beforeSuffix, to+afterSuffix
		}
		before, after = diff.Replaced(was, before, f.Path, from), diff.Replaced(is, after, f.Path, to)
	}
	p.Fields = fields
	return p.WithStates(part(before), part(after))
}

func part(v any) diff.Part { fields, _ := v.(map[string]any); return fields }

func partOf(u *unstructured.Unstructured) diff.Part {
	if u == nil {
		return nil
	}
	return u.Object
}

// Detail is how much of an object is shown.
type Detail int

// Each detail leaves out more, but never a changed field.
const (
	// Stored leaves out the server's own bookkeeping.
	Stored Detail = iota
	// Configured also leaves out the state that controllers keep.
	Configured
	// Readable also leaves out what says nothing to a person.
	Readable
)

// Trim returns an object in a detail; the fields that change stay. The object is not modified, and nil stays
// nil.
func Trim(u *unstructured.Unstructured, fields []engine.FieldChange, d Detail) *unstructured.Unstructured {
	leftOut := [...]struct {
		by   Detail // the first that does
		path []string
	}{
		{Stored, []string{"metadata", "managedFields"}},
		{Stored, []string{"metadata", "resourceVersion"}},
		{Stored, []string{"metadata", "generation"}},
		{Configured, []string{"status"}},
		{Readable, []string{"metadata", "uid"}},
		{Readable, []string{"metadata", "creationTimestamp"}},
		{Readable, []string{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}},
	}
	if u == nil {
		return nil
	}
	object := u.Object
	for _, l := range leftOut {
		if d >= l.by && !slices.ContainsFunc(fields,
			func(f engine.FieldChange) bool { return overlaps(&f, l.path) }) {
			object = without(object, l.path)
		}
	}
	return &unstructured.Unstructured{Object: object}
}

// overlaps reports whether a field lies at, above or below a path.
func overlaps(f *engine.FieldChange, path []string) bool {
	for i := range min(len(f.Path), len(path)) {
		if f.Path[i].FieldName == nil || *f.Path[i].FieldName != path[i] {
			return false
		}
	}
	return len(f.Path) > 0
}

// without returns a map without a field, and without the maps that become empty.
func without(m map[string]any, path []string) map[string]any {
	v, has := m[path[0]]
	if !has {
		return m
	}
	if len(path) > 1 {
		below, _ := v.(map[string]any)
		rest := without(below, path[1:])
		switch {
		case engine.Identical(rest, below):
			return m
		case len(rest) > 0:
			return diff.With(m, path[0], rest)
		}
	}
	return diff.Without(m, path[0])
}
