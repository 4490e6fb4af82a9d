package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// tweak is one thing that a change does to an object. Done twice it does no more
// than once, as what a policy says.
type tweak struct {
	Do    action
	At    fieldpath.Path
	Value any
	// To is the position of an insertion. The element is not inserted where there
	// is one with this identity.
	To       int
	Identity fieldpath.PathElement
}

type action string

const (
	doSet    action = "set"
	doRemove action = "remove"
	doInsert action = "insert"
	doFront  action = "move to the front"
)

// String is the edit as a failing test shows it.
func (e tweak) String() string {
	switch e.Do {
	case doSet:
		return fmt.Sprintf("set %s = %s", e.At, jsonOf(e.Value))
	case doInsert:
		return fmt.Sprintf("insert into %s at %d: %s", e.At, e.To, jsonOf(e.Value))
	}
	return fmt.Sprintf("%s %s", e.Do, e.At)
}

// edited is a copy of an object with edits made.
func edited(object map[string]any, edits []tweak) map[string]any {
	out := throughJSON(object).(map[string]any)
	for _, e := range edits {
		out = e.in(out, e.At).(map[string]any)
	}
	return out
}

// in makes the edit in a value of which a rest of the path is still to be walked.
// An element that is not there cannot be changed; a map on the way is made.
func (e tweak) in(v any, rest fieldpath.Path) any {
	if len(rest) == 0 {
		return e.here(v)
	}
	step := rest[0]
	last := len(rest) == 1
	if step.FieldName != nil {
		return e.inMap(v, *step.FieldName, rest)
	}
	list, _ := v.([]any)
	i := elementOf(list, step)
	if step.Index != nil {
		i = *step.Index
	}
	if i < 0 || i >= len(list) {
		return v
	}
	list = slices.Clone(list)
	switch {
	case last && e.Do == doRemove:
		return slices.Delete(list, i, i+1)
	case last && e.Do == doFront:
		x := list[i]
		return slices.Insert(slices.Delete(list, i, i+1), 0, x)
	}
	list[i] = e.in(list[i], rest[1:])
	return list
}

func (e tweak) inMap(v any, name string, rest fieldpath.Path) any {
	fields, ok := v.(map[string]any)
	if _, there := fields[name]; !there && e.Do != doSet && e.Do != doInsert {
		return v
	}
	if !ok {
		fields = nil
	}
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	if len(rest) == 1 && e.Do == doRemove {
		delete(fields, name)
		return fields
	}
	fields[name] = e.in(fields[name], rest[1:])
	return fields
}

func (e tweak) here(v any) any {
	switch e.Do {
	case doSet:
		return e.Value
	case doInsert:
		list, _ := v.([]any)
		if elementOf(list, e.Identity) >= 0 {
			return v
		}
		return slices.Insert(slices.Clone(list), min(e.To, len(list)), e.Value)
	}
	return v
}

// randomTweak is made for an object as it is; it may meet another one.
func (s *shape) randomTweak(r *rand.Rand, object map[string]any) tweak {
	sites := s.sites(nil, object)
	at := sites[r.IntN(len(sites))]
	switch list, isList := at.value.([]any); {
	case !at.there:
		return at.fill(r)
	case isList && r.IntN(3) > 0:
		return at.insert(r, list)
	case at.inList && r.IntN(3) == 0:
		return tweak{Do: doFront, At: at.at}
	case !at.fixed && r.IntN(3) == 0:
		return tweak{Do: doRemove, At: at.at}
	}
	return tweak{Do: doSet, At: at.at, Value: at.shape.randomOrOdd(r, at.fixed)}
}

// fill is for a place where nothing is, as far as is known: a default may be.
func (s site) fill(r *rand.Rand) tweak {
	if r.IntN(8) == 0 {
		return tweak{Do: doRemove, At: s.at}
	}
	return tweak{Do: doSet, At: s.at, Value: s.shape.randomOrOdd(r, s.fixed)}
}

func (s site) insert(r *rand.Rand, list []any) tweak {
	v := s.shape.element().random(r)
	return tweak{Do: doInsert, At: s.at, Value: v, To: r.IntN(len(list) + 1), Identity: s.shape.identity(v)}
}

// randomOrOdd is now and then null, or empty.
func (s *shape) randomOrOdd(r *rand.Rand, fixed bool) any {
	switch {
	case fixed || r.IntN(10) > 0:
	case r.IntN(2) == 0:
		return nil
	case s.Type == "array":
		return []any{}
	case s.Type == "object":
		return map[string]any{}
	}
	return s.random(r)
}

// throughJSON copies a value, and gives numbers the types that they have in objects.
func throughJSON(v any) any {
	var out any
	if err := utiljson.Unmarshal([]byte(jsonOf(v)), &out); err != nil {
		panic(err)
	}
	return out
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
