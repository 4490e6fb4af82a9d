package redact

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// identity are the fields that identify an object. They are shown whatever was learned: a
// report that does not name its objects is of no use.
var identity = map[string]map[string]bool{ //nolint:gochecknoglobals // an immutable table
	"":         {"apiVersion": true, "kind": true},
	"metadata": {"name": true, "namespace": true, "uid": true, "resourceVersion": true, "creationTimestamp": true},
}

// walker masks two states of a value side by side; nil is a state without it.
type walker struct {
	*Masker
	side string // which state it is, if it has no counterpart
	all  bool   // every text is secret, known or not
}

// root masks two states of an object.
func (m *Masker) root(secret bool, a, b any) (any, any) {
	w := walker{Masker: m}
	return w.fields(a, b, func(k string, x, y any) (any, any) {
		switch {
		case identity[""][k]:
			return x, y
		case secret && (k == "data" || k == "stringData"):
			return walker{Masker: m, all: true}.pair(x, y)
		case k == "metadata":
			return w.metadata(secret, x, y)
		}
		return w.pair(x, y)
	})
}

func (w walker) metadata(secret bool, a, b any) (any, any) {
	return w.fields(a, b, func(k string, x, y any) (any, any) {
		switch {
		case identity["metadata"][k]:
			return x, y
		case secret && k == "annotations":
			return w.fields(x, y, func(k string, x, y any) (any, any) {
				return walker{Masker: w.Masker, all: k == engine.LastApplied}.pair(x, y)
			})
		}
		return w.pair(x, y)
	})
}

// pair masks two states of any value.
func (w walker) pair(a, b any) (any, any) {
	if reflect.TypeOf(a) != reflect.TypeOf(b) && a != nil && b != nil {
		x, _ := w.on(beforeSuffix, b).pair(a, nil)
		_, y := w.on(afterSuffix, a).pair(nil, b)
		return x, y
	}
	kind := a
	if kind == nil {
		kind = b
	}
	switch kind.(type) {
	case map[string]any:
		return w.fields(a, b, func(_ string, x, y any) (any, any) { return w.pair(x, y) })
	case []any:
		return w.lists(a, b)
	}
	return w.scalars(a, b)
}

// fields masks two states of a map; anything else is masked whole.
func (w walker) fields(a, b any, each func(name string, x, y any) (any, any)) (any, any) {
	x, okX := a.(map[string]any)
	y, okY := b.(map[string]any)
	if (a != nil && !okX) || (b != nil && !okY) {
		return w.pair(a, b)
	}
	out, later := rewrite{of: x}, rewrite{of: y}
	for _, k := range union(x, y) {
		from, to := each(k, x[k], y[k])
		name := w.Name(k)
		out.set(k, name, from)
		later.set(k, name, to)
	}
	return out.value(a), later.value(b)
}

// lists masks two states of a list. What lies between the common ends is paired
// by place; where that cannot be, every mask says which state it is from, so
// that a difference of masked values stays one.
func (w walker) lists(a, b any) (any, any) {
	x, _ := a.([]any)
	y, _ := b.([]any)
	head, tail := commonEnds(x, y)
	out, later := slices.Clone(x), slices.Clone(y)
	for i := range head {
		out[i], later[i] = w.pair(x[i], y[i])
	}
	for i := 1; i <= tail; i++ {
		p, q := len(x)-i, len(y)-i
		out[p], later[q] = w.pair(x[p], y[q])
	}
	paired := len(x) == len(y)
	for i := head; i < len(x)-tail; i++ {
		if paired {
			out[i], later[i] = w.pair(x[i], y[i])
			continue
		}
		out[i], _ = w.on(beforeSuffix, b).pair(x[i], nil)
	}
	for i := head; i < len(y)-tail && !paired; i++ {
		_, later[i] = w.on(afterSuffix, a).pair(nil, y[i])
	}
	return keep(a, x, out), keep(b, y, later)
}

// on marks a state, if there is another one.
func (w walker) on(side string, other any) walker {
	if other != nil {
		w.side = side
	}
	return w
}

func (w walker) scalars(a, b any) (any, any) {
	x, y := w.scalar(a), w.scalar(b)
	if a == nil || b == nil {
		return x, y
	}
	if a != b && x == y {
		return x.(string) + beforeSuffix, y.(string) + afterSuffix
	}
	return x, y
}

// scalar masks one text, or a number that is written like a value.
func (w walker) scalar(v any) any {
	switch s := v.(type) {
	case string:
		if w.all {
			return Mask + w.side
		}
		if text := w.Text(s); text != s {
			return text + w.side
		}
	case int64:
		if digits := strconv.FormatInt(s, 10); w.all || (len(digits) >= window && w.Text(digits) == Mask) {
			return Mask + w.side
		}
	case float64, bool:
		if w.all {
			return Mask + w.side
		}
	}
	return v
}

// rewrite is a copy on write of a map.
type rewrite struct {
	of, copied map[string]any
}

func (r *rewrite) set(key, name string, v any) {
	old, ok := r.of[key]
	if !ok || (key == name && engine.Identical(old, v)) {
		return
	}
	if r.copied == nil {
		r.copied = maps.Clone(r.of)
	}
	delete(r.copied, key)
	for i := 2; key != name && has(r.copied, name); i++ {
		name = Mask + " (" + strconv.Itoa(i) + ")" // two names may be equal once masked
	}
	r.copied[name] = v
}

// value is the copy, or what was given when there is none.
func (r *rewrite) value(given any) any {
	if r.copied == nil {
		return given
	}
	return r.copied
}

func has(m map[string]any, key string) bool { _, ok := m[key]; return ok }

// keep returns the list that was given when no element of the copy differs.
func keep(given any, list, copied []any) any {
	for i := range list {
		if !engine.Identical(list[i], copied[i]) {
			return copied
		}
	}
	return given
}

func commonEnds(x, y []any) (head, tail int) {
	shorter := min(len(x), len(y))
	for head < shorter && reflect.DeepEqual(x[head], y[head]) {
		head++
	}
	for tail < shorter-head && reflect.DeepEqual(x[len(x)-1-tail], y[len(y)-1-tail]) {
		tail++
	}
	return head, tail
}

// union is the sorted keys of both.
func union(x, y map[string]any) []string {
	keys := slices.AppendSeq(make([]string, 0, len(x)+len(y)), maps.Keys(x))
	keys = slices.AppendSeq(keys, maps.Keys(y))
	slices.Sort(keys)
	return slices.Compact(keys)
}
