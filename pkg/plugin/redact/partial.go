package redact

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Partial returns the change of an object without what is secret: masks stand in the place of such values, and their fields are
// Withheld.
func Partial(p diff.Partial, key engine.ObjectKey) diff.Partial {
	if len(p.Fields) == 0 {
		return p
	}
	if p = Hidden(p); !key.IsSecret() {
		return p
	}
	before, after := pair(p.Before.Object(key), p.After.Object(key))
	fields := slices.Clone(p.Fields)
	for i := range fields {
		fields[i].Withheld = fields[i].Withheld || isSecret(p, fields[i])
	}
	p.Fields = fields
	return p.WithStates(diff.PartOf(before), diff.PartOf(after))
}

// MarkedBy returns a change with its fields marked as Secret that are, lead to, or are parts of some that were made of a
// Secret, and what a Secret holds.
func MarkedBy(secrets []engine.FieldChange, p diff.Partial, key engine.ObjectKey) diff.Partial {
	if key.IsSecret() {
		for _, path := range []fieldpath.Path{{fieldName("data")}, {fieldName("stringData")}, {fieldName("metadata"), fieldName("annotations"), fieldName(engine.LastApplied)}} {
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

// Hidden returns a change without the names and values of the fields that are marked as Secret, which are Withheld in it.
func Hidden(p diff.Partial) diff.Partial { return withoutSecrets(withoutNames(p)) }

// withoutNames returns a change without the names that were made of a Secret: what is in a map or list with such a name becomes one
// field, all of which is secret. Fields with such names of the object itself, or of its metadata, become one that has none.
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
	out := diff.Partial{Before: nameless(p.Before, outermost), After: nameless(p.After, outermost)}
	stand := fieldpath.NewSet() // fields that stand for others
	for _, f := range p.Fields {
		at := slices.IndexFunc(around, func(w fieldpath.Path) bool { return len(w) <= len(f.Path) && w.Equals(f.Path[:len(w)]) })
		switch {
		case at >= 0:
			f = whole(p, f, around[at])
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

// isOutermost reports whether a name that was made of a Secret is that of a field of the object itself or of its metadata, which hold
// what names the object.
func isOutermost(f engine.FieldChange) bool {
	return f.SecretFrom == 1 || f.SecretFrom == 2 && f.Path[0].Equals(fieldName("metadata"))
}

// nameless returns a part with one field without a name in the place of those of the object, and one in the place of those of its
// metadata. withoutSecrets hides what they hold.
func nameless(p diff.Part, outermost []fieldpath.Path) diff.Part {
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

// whole is the field that stands for all fields below a path.
func whole(p diff.Partial, f engine.FieldChange, at fieldpath.Path) engine.FieldChange {
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

// withoutSecrets returns a change without the values of the fields that were made of a Secret.
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
	return p.WithStates(partOf(before), partOf(after))
}

func partOf(v any) diff.Part { part, _ := v.(map[string]any); return part }

// MarkSecrets returns the change of an object with everything in it; the fields
// that hold what is secret are marked as Secret.
func MarkSecrets(p diff.Partial, key engine.ObjectKey) diff.Partial {
	if !key.IsSecret() {
		return p
	}
	p.Fields = slices.Clone(p.Fields)
	for i := range p.Fields {
		p.Fields[i].Secret = p.Fields[i].Secret || isSecret(p, p.Fields[i])
	}
	return p
}

// isSecret reports whether a mask would hide something of a field of a Secret.
func isSecret(p diff.Partial, f engine.FieldChange) bool {
	from, to := p.Contents(f)
	hiddenFrom, _ := values(engine.FieldNames(f.Path), from, nil)
	_, hiddenTo := values(engine.FieldNames(f.Path), nil, to)
	return !diff.Same(from, hiddenFrom) || !diff.Same(to, hiddenTo)
}
