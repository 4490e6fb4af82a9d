package cel

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// taintName is the name under which an activation hands out the taint of the
// expression that is being evaluated. No expression can spell it.
const taintName = "#taint"

const (
	maxVisited = 10_000 // values visited in one list or map
	maxKept    = 1_000  // values kept to compare a result with
)

// taint follows the values of Secrets through one evaluation of one expression. It
// belongs to one goroutine.
type taint struct {
	secrets engine.Secrets
	met     int   // how many secret values have come up so far
	visited int   // how many values were looked at so far
	values  []any // the arguments of the calls that are being evaluated
}

// newTaint returns a taint that reports to secrets what is computed from them.
func newTaint(s engine.Secrets) *taint { return &taint{secrets: s} }

// meet records a value of the input.
func (w *taint) meet(v ref.Val) {
	value, visited := nativeValues(v)
	w.visited += visited
	if visited > maxVisited || w.secrets.Known(value) {
		w.met++
	}
	w.keep(value)
}

func (w *taint) keep(value any) {
	if value != nil && len(w.values) < maxKept {
		w.values = append(w.values, value)
	}
}

// made records the result of a function that was given the values since a moment.
func (w *taint) made(since moment, literals []any, v ref.Val) {
	result, visited := nativeValues(v)
	w.visited += visited
	if failed, ok := v.(*types.Err); ok {
		result = failed.Error() // it may quote the values
	}
	given := w.values[min(since.values, len(w.values)):]
	if w.met > since.met {
		w.secrets.Derive(result, slices.Concat(given, literals)...)
	}
	w.values = w.values[:len(w.values)-len(given)]
	w.keep(result)
}

// moment is how far an evaluation has come.
type moment struct{ met, values int }

func (w *taint) now() moment { return moment{met: w.met, values: len(w.values)} }

// nativeValues returns the texts and numbers that a value holds, in the types of JSON, and
// how many values it visited: more than maxVisited where it has not read all.
func nativeValues(v ref.Val) (value any, visited int) {
	left := maxVisited
	value = convert(v, &left)
	return value, maxVisited - left
}

func convert(v ref.Val, left *int) any {
	if *left--; *left < 0 {
		return nil
	}
	switch v := v.(type) {
	case types.String:
		return string(v)
	case types.Bytes:
		return string(v)
	case types.Int:
		return int64(v)
	case *types.Optional:
		if v.HasValue() {
			return convert(v.GetValue(), left)
		}
	case traits.Lister:
		if v.Type() == types.ListType {
			return convertList(v, left)
		}
	case traits.Mapper:
		if v.Type() == types.MapType { // and not the policy's variables, which it would evaluate
			return convertMap(v, left)
		}
	case types.Bool, types.Double, types.Uint, types.Null, types.Timestamp, types.Duration, *types.Err, *types.Unknown:
	default:
		if text, ok := v.Value().(fmt.Stringer); ok { // a URL, an address, a quantity ...
			return text.String()
		}
	}
	return nil
}

func convertList(l traits.Lister, left *int) any {
	var list []any
	for it := l.Iterator(); *left >= 0 && it.HasNext() == types.True; {
		list = append(list, convert(it.Next(), left))
	}
	return list
}

func convertMap(m traits.Mapper, left *int) any {
	fields := map[string]any{}
	for it := m.Iterator(); *left >= 0 && it.HasNext() == types.True; {
		key := it.Next()
		if name, ok := key.(types.String); ok {
			fields[string(name)] = convert(m.Get(key), left)
		}
	}
	return fields
}
