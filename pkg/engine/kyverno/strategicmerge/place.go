package strategicmerge

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// place is where in the object the merge is.
type place struct {
	parent *place
	key    string // of a field
	index  int    // of a list element, whose key is empty
	lists  *Lists
}

func (p *place) field(key string) *place {
	return &place{parent: p, key: key, lists: p.lists}
}

func (p *place) element(i int) *place {
	return &place{parent: p, index: i, lists: p.lists}
}

// String returns the path as users write it: spec.containers[0].image.
func (p *place) String() string {
	if p == nil {
		return ""
	}
	before := p.parent.String()
	switch {
	case p.key == "" && p.parent == nil:
		return ""
	case p.key == "":
		return fmt.Sprintf("%s[%d]", before, p.index)
	case before == "":
		return p.key
	default:
		return before + "." + p.key
	}
}

// isLabels reports whether the map at this place holds labels or annotations,
// whose values the server only takes as strings.
func (p *place) isLabels() bool {
	return (p.key == "labels" || p.key == "annotations") && p.parent != nil && p.parent.key == "metadata"
}

// listRule is how the list at a place merges.
type listRule struct {
	merge  bool     // instead of being replaced
	keys   []string // of a list of maps that merges; empty where none are known
	known  bool     // the schema knows the field
	byType bool     // only because of the list type, which Kyverno does not look at
}

// listRule looks at the patch strategy first, as Kyverno does, and then at the
// schema's list type, which Kyverno does not know.
func (p *place) listRule() listRule { return p.lists.rule(p) }

// appendPattern appends the path, in which all elements of a list are one.
func (p *place) appendPattern(text []byte) []byte {
	if p.parent == nil {
		return text
	}
	return append(append(p.parent.appendPattern(text), p.key...), 0)
}

func (p *place) lookListRule() listRule {
	keys, isMap := p.mapKeys()
	rule := listRule{known: isMap}
	if meta := p.parent.patchMeta(); meta != nil {
		if _, found, err := meta.LookupPatchMetadataForSlice(p.key); err == nil {
			rule.known = true
			rule.merge = slices.Contains(found.GetPatchStrategies(), "merge")
			if key := found.GetPatchMergeKey(); rule.merge && key != "" {
				rule.keys = withSecondKey(key)
				if slices.Contains(keys, key) {
					rule.keys = keys
				}
				return rule
			}
		}
	}
	if isMap {
		rule.merge, rule.keys, rule.byType = true, keys, true
	}
	return rule
}

// withSecondKey adds the second list-map key of the built-in lists that have
// one, for schemas that only have the patch merge key.
func withSecondKey(key string) []string {
	switch key {
	case "containerPort", "port":
		return []string{key, "protocol"}
	case "topologyKey":
		return []string{key, "whenUnsatisfiable"}
	default:
		return []string{key}
	}
}

// patchMeta returns the patch schema of the map at this place; nil where nothing is known.
func (p *place) patchMeta() strategicpatch.LookupPatchMeta {
	switch {
	case p == nil:
		return nil
	case p.parent == nil:
		return usable(p.lists.Patch)
	}
	if p.key == "" { // an element: its list knows
		list := p.parent
		above := list.parent.patchMeta()
		if above == nil {
			return nil
		}
		meta, _, err := above.LookupPatchMetadataForSlice(list.key)
		if err != nil {
			return nil
		}
		return usable(meta)
	}
	above := p.parent.patchMeta()
	if above == nil {
		return nil
	}
	meta, _, err := above.LookupPatchMetadataForStruct(p.key)
	if err != nil {
		return nil
	}
	return usable(meta)
}

// usable keeps out a schema without content, on which lookups would panic.
func usable(meta strategicpatch.LookupPatchMeta) strategicpatch.LookupPatchMeta {
	if v3, ok := meta.(strategicpatch.PatchMetaFromOpenAPIV3); ok && v3.Schema == nil {
		return nil
	}
	return meta
}

// mapKeys are the list-map keys of the list at this place.
func (p *place) mapKeys() ([]string, bool) {
	atom := p.atom()
	if atom.List == nil || atom.List.ElementRelationship != schema.Associative || len(atom.List.Keys) == 0 {
		return nil, false
	}
	return atom.List.Keys, true
}

// atom is the structural type at this place, empty where it is not known.
func (p *place) atom() schema.Atom {
	ref, ok := p.typeRef()
	if !ok {
		return schema.Atom{}
	}
	atom, _ := p.lists.types().Schema.Resolve(ref)
	return atom
}

func (p *place) typeRef() (schema.TypeRef, bool) {
	if p.parent == nil {
		t := p.lists.types()
		return t.Ref, t.Schema != nil
	}
	above := p.parent.atom()
	switch {
	case p.key == "" && above.List != nil:
		return above.List.ElementType, true
	case p.key != "" && above.Map != nil:
		if f, found := above.Map.FindField(p.key); found {
			return f.Type, true
		}
		return above.Map.ElementType, true
	default:
		return schema.TypeRef{}, false
	}
}
