package cel

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxElements bounds what one expression may build. CEL's cost does not bound it:
// joining two lists costs next to nothing, so that a chain of variables which
// each join the one before with itself builds a list that no memory holds.
const maxElements = 100_000

func tooManyElements() *engine.LimitError {
	return &engine.LimitError{What: "elements in one value", Max: maxElements}
}

// fits reports whether a value is small enough to be read. It takes no longer
// than reading maxElements elements does, however big the value is.
func fits(v ref.Val) bool {
	left := maxElements
	count(v, &left)
	return left >= 0
}

// count subtracts the elements of a value from what is left, and stops when nothing is.
// Data of the input counts by its length alone: it is no bigger than it was.
func count(v ref.Val, left *int) {
	*left--
	if *left < 0 {
		return
	}
	switch v := v.(type) {
	case *object:
		*left -= v.size
	case *types.Optional:
		if v.HasValue() {
			count(v.GetValue(), left)
		}
	case *mutation.JSONPatchVal:
		if v.Val != nil {
			count(v.Val, left)
		}
	case traits.Mapper:
		if !counted(v, left) {
			for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
				count(v.Get(it.Next()), left)
			}
		}
	case traits.Lister:
		if !counted(v, left) {
			for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
				count(it.Next(), left)
			}
		}
	}
}

// container is a list or a map.
type container interface {
	ref.Val
	traits.Sizer
}

// counted reports whether the length of a container suffices: that of data of the input,
// or of one that is too big for what is left.
func counted(c container, left *int) bool {
	size, ok := c.Size().(types.Int)
	switch {
	case !ok || int64(size) > int64(*left):
		*left = -1
		return true
	case isNative(c):
		*left -= int(size)
		return true
	}
	return false
}

// isNative reports whether a container is data of the input, rather than made by an
// expression. Only the library's own containers may be asked for their value: those
// that join others would join all parts of their parts.
func isNative(v ref.Val) bool {
	switch reflect.TypeOf(v) {
	case reflect.TypeOf(types.DefaultTypeAdapter.NativeToValue([]any{})):
		_, native := v.Value().([]any)
		return native
	case reflect.TypeOf(types.DefaultTypeAdapter.NativeToValue(map[string]any{})):
		_, native := v.Value().(map[string]any)
		return native
	}
	return false
}

// What values take in memory.
const (
	bytesOfItem = 32 // of a list: a reference, and what it refers to
	bytesOfRune = 4
)

// bytesPerStep is how much text is read in a step. CEL counts the characters of a text
// whenever it is an argument.
const bytesPerStep = 4

// stepsPerItem is how long it takes to get at an item of a list or a map that an
// expression has made.
const stepsPerItem = 16

// size is what there is to read in a value.
type size struct{ values, bytes int }

// steps is how long reading it takes.
func (s size) steps() int { return s.values + s.bytes/bytesPerStep }

// measure walks a value as if it were a tree, as whatever writes it will, and pays for the
// way: a list can hold another so often that its text would not fit into any memory.
func measure(b *engine.Budget, v any) (size, error) {
	s := size{values: 1}
	if err := s.add(b, v); err != nil {
		return size{}, err
	}
	return s, nil
}

func (s *size) add(b *engine.Budget, v any) error {
	s.values++
	bytes := 0
	var items []any
	switch v := v.(type) {
	case string:
		bytes = len(v)
	case types.String:
		bytes = len(v)
	case types.Bytes:
		bytes = len(v)
	case []any:
		items = v
	case map[string]any:
		return s.fields(b, v)
	case *object:
		for _, field := range v.fields {
			items = append(items, field)
		}
	case *types.Optional:
		if v.HasValue() {
			items = append(items, v.GetValue())
		}
	case *mutation.JSONPatchVal:
		bytes = len(v.Op) + len(v.Path) + len(v.From)
		if v.Val != nil {
			items = append(items, v.Val)
		}
	case traits.Mapper:
		return s.mapper(b, v)
	case traits.Lister:
		return s.lister(b, v)
	}
	s.bytes += bytes
	if err := b.Spend(1 + bytes/bytesPerStep); err != nil {
		return err
	}
	for _, item := range items {
		if err := s.add(b, item); err != nil {
			return err
		}
	}
	return nil
}

func (s *size) fields(b *engine.Budget, m map[string]any) error {
	for key, item := range m {
		s.bytes += len(key)
		if err := s.add(b, item); err != nil {
			return err
		}
	}
	return b.Spend(1)
}

func (s *size) mapper(b *engine.Budget, m traits.Mapper) error {
	if isNative(m) {
		return s.add(b, m.Value())
	}
	if m.Type() != types.MapType { // the policy's variables, which it would evaluate
		return b.Spend(1)
	}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		if err := s.add(b, key); err != nil {
			return err
		}
		if err := s.add(b, m.Get(key)); err != nil {
			return err
		}
		if err := b.Spend(stepsPerItem); err != nil {
			return err
		}
	}
	return b.Spend(1)
}

func (s *size) lister(b *engine.Budget, l traits.Lister) error {
	if isNative(l) {
		return s.add(b, l.Value())
	}
	for it := l.Iterator(); it.HasNext() == types.True; {
		if err := s.add(b, it.Next()); err != nil {
			return err
		}
		if err := b.Spend(stepsPerItem); err != nil {
			return err
		}
	}
	return b.Spend(1)
}

// build pays for the memory of a value, but not of those in it, which are paid for.
func build(b *engine.Budget, v ref.Val) error {
	switch v := v.(type) {
	case types.String:
		return write(b, len(v))
	case types.Bytes:
		return write(b, len(v))
	case *object:
		return b.Build(bytesOfItem * v.size)
	case traits.Mapper:
		return b.BuildMap(sizeOf(v))
	case traits.Lister:
		return b.BuildList(2 * sizeOf(v))
	}
	return nil
}

// write pays for a text of so many bytes.
func write(b *engine.Budget, bytes int) error {
	if err := b.Build(bytes); err != nil {
		return err
	}
	return b.Spend(bytes / bytesPerStep)
}

// stringOf returns a text; ok is false for a value that is none.
func stringOf(v ref.Val) (text string, ok bool) {
	s, ok := v.(types.String)
	return string(s), ok
}

// lengthOf returns how many bytes a text has, 0 for a value that is none.
func lengthOf(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

// sizeOf returns how many items a list or a map has, 0 for another value.
func sizeOf(v ref.Val) int {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		n, _ := v.(traits.Sizer).Size().(types.Int)
		return int(n)
	}
	return 0
}
