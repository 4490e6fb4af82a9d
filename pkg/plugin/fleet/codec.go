package fleet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// codec turns Go values into bytes, and back in the same process: structs with what they export, objects, and errors with
// their texts. What the states of one object share is in the bytes once, and shared again when it is read. Words and lists of
// rules that come again and again are not in the bytes, which name them by their places here. The zero value is ready for use.
//
// A library wants types of its own beside those of the engine, for errors and for the values in paths, and writes what two
// states share twice.
type codec struct {
	words   []string
	places  map[string]uint64 // of the words
	lists   [][]engine.RuleRef
	known   map[*engine.RuleRef]uint64 // the places of lists, by their first rules
	types   map[reflect.Type][]int     // the exported fields of a struct
	written map[container]uint64       // those of the value that is being encoded
}

// maxWord bounds the bytes of a word, maxWords and maxLists how many are held.
const (
	maxWord  = 64
	maxWords = 1 << 14
	maxLists = 1 << 10
)

// The tags that say what follows, where the type of a value does not.
const (
	isNil = iota
	isTrue
	isFalse
	isInt
	isFloat
	isText
	isMap
	isList
	isShared
	isObject
)

// stepError is the error of a step that was kept.
type stepError struct{ text, brief string }

// Error returns the whole text.
func (e *stepError) Error() string { return e.text }

// Brief is what wording.Brief looks for.
func (e *stepError) Brief() string { return e.brief }

// fields returns the places of the exported fields of a struct.
func (c *codec) fields(t reflect.Type) []int {
	out, known := c.types[t]
	if known {
		return out
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			out = append(out, i)
		}
	}
	if c.types == nil {
		c.types = map[reflect.Type][]int{}
	}
	c.types[t] = out
	return out
}

// encode appends a value.
func (c *codec) encode(out []byte, v any) ([]byte, error) {
	if c.written == nil {
		c.written = map[container]uint64{}
	}
	clear(c.written)
	e := encoder{c, out}
	err := e.encode(reflect.ValueOf(v))
	return e.out, err
}

// encoder appends the parts of one value.
type encoder struct {
	*codec
	out []byte
}

// container is a map, a list or an object in memory.
type container struct {
	at  uintptr
	len int // tells a list from a part of it; -1 for the others
}

func (e *encoder) tag(is byte)   { e.out = append(e.out, is) }
func (e *encoder) uint(n uint64) { e.out = binary.AppendUvarint(e.out, n) }
func (e *encoder) int(n int64)   { e.out = binary.AppendVarint(e.out, n) }

// text writes a text: 0 and the text itself, or the place of a word, counted from 1.
func (e *encoder) text(s string) {
	if len(s) <= maxWord {
		place, known := e.places[s]
		if !known && len(e.words) < maxWords {
			if e.places == nil {
				e.places = map[string]uint64{}
			}
			s = strings.Clone(s) // which may be a part of a large one
			e.words = append(e.words, s)
			place, known = uint64(len(e.words)), true
			e.places[s] = place
		}
		if known {
			e.uint(place)
			return
		}
	}
	e.uint(0)
	e.uint(uint64(len(s)))
	e.out = append(e.out, s...)
}

// shared reports whether a container is there already, and then says where.
func (e *encoder) shared(c container) bool {
	place, known := e.written[c]
	if known {
		e.tag(isShared)
		e.uint(place)
		return true
	}
	e.written[c] = uint64(len(e.written))
	return false
}

// json writes a value of an object.
func (e *encoder) json(v any) error {
	switch v := v.(type) {
	case nil:
		e.tag(isNil)
	case bool:
		if v {
			e.tag(isTrue)
		} else {
			e.tag(isFalse)
		}
	case int64:
		e.tag(isInt)
		e.int(v)
	case float64:
		e.tag(isFloat)
		e.out = binary.BigEndian.AppendUint64(e.out, math.Float64bits(v))
	case string:
		e.tag(isText)
		e.text(v)
	case map[string]any:
		if e.shared(container{reflect.ValueOf(v).Pointer(), -1}) {
			return nil
		}
		e.tag(isMap)
		e.uint(uint64(len(v)))
		for key, one := range v {
			e.text(key)
			if err := e.json(one); err != nil {
				return err
			}
		}
	case []any:
		if len(v) > 0 && e.shared(container{reflect.ValueOf(v).Pointer(), len(v)}) {
			return nil
		}
		e.tag(isList)
		e.uint(uint64(len(v)))
		for _, one := range v {
			if err := e.json(one); err != nil {
				return err
			}
		}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		var plain any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &plain); err != nil {
			return err
		}
		return e.json(plain)
	}
	return nil
}

// encode writes a value of which the type is known when it is read.
func (e *encoder) encode(v reflect.Value) error {
	switch v.Kind() { //nolint:exhaustive // the others are none of what is kept
	case reflect.Bool:
		return e.json(v.Bool())
	case reflect.Int:
		e.int(v.Int())
	case reflect.String:
		e.text(v.String())
	case reflect.Slice:
		if v.IsNil() {
			e.tag(isNil)
			return nil
		}
		e.tag(isList)
		e.uint(uint64(v.Len()))
		return e.elements(v)
	case reflect.Array:
		return e.elements(v)
	case reflect.Struct:
		return e.structure(v)
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*unstructured.Unstructured]() {
			return e.object(v.Interface().(*unstructured.Unstructured))
		}
		if v.IsNil() {
			e.tag(isNil)
			return nil
		}
		e.tag(isObject)
		return e.encode(v.Elem())
	case reflect.Interface:
		return e.dynamic(v)
	default:
		return fmt.Errorf("a %s cannot be kept", v.Type())
	}
	return nil
}

func (e *encoder) elements(v reflect.Value) error {
	for i := range v.Len() {
		if err := e.encode(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// structure writes which fields of a struct are set, and these.
func (e *encoder) structure(v reflect.Value) error {
	if v.Type() == reflect.TypeFor[engine.RuleList]() {
		return e.list(v.Interface().(engine.RuleList))
	}
	fields := e.fields(v.Type())
	set := uint64(0)
	for i, at := range fields {
		if !v.Field(at).IsZero() {
			set |= 1 << i
		}
	}
	e.uint(set)
	for i, at := range fields {
		if set&(1<<i) == 0 {
			continue
		}
		if err := e.encode(v.Field(at)); err != nil {
			return err
		}
	}
	return nil
}

// list writes the place of a list of rules, counted from 1, or 0 and the list itself; and what the set lacks of it.
func (e *encoder) list(l engine.RuleList) error {
	place := uint64(0)
	if len(l.List) > 0 {
		place = e.known[&l.List[0]]
		if place == 0 && len(e.lists) < maxLists {
			if e.known == nil {
				e.known = map[*engine.RuleRef]uint64{}
			}
			e.lists = append(e.lists, l.List)
			place = uint64(len(e.lists))
			e.known[&l.List[0]] = place
		}
		if place > 0 && len(e.lists[place-1]) != len(l.List) { // a part of it
			place = 0
		}
	}
	e.uint(place)
	if place == 0 {
		if err := e.encode(reflect.ValueOf(l.List)); err != nil {
			return err
		}
	}
	return e.encode(reflect.ValueOf(l.Except))
}

// object writes an object, which may be nil.
func (e *encoder) object(u *unstructured.Unstructured) error {
	switch {
	case u == nil:
		e.tag(isNil)
		return nil
	case e.shared(container{reflect.ValueOf(u).Pointer(), -1}):
		return nil
	}
	e.tag(isObject)
	return e.json(u.Object)
}

// dynamic writes what an interface holds.
func (e *encoder) dynamic(v reflect.Value) error {
	switch v.Type() {
	case reflect.TypeFor[error]():
		err, _ := v.Interface().(error)
		if err == nil {
			e.tag(isNil)
			return nil
		}
		e.tag(isText)
		e.text(err.Error())
		e.text(wording.Brief(err))
		return nil
	case reflect.TypeFor[value.Value]():
		return e.json(v.Interface().(value.Value).Unstructured())
	}
	return e.json(v.Interface())
}

var errShort = errors.New("what was kept is not whole")

// decode reads into what a pointer leads to.
func (c *codec) decode(in []byte, to any) error {
	d := decoder{codec: c, in: in}
	if err := d.decode(reflect.ValueOf(to).Elem()); err != nil {
		return err
	}
	if len(d.in) > 0 {
		return errShort
	}
	return nil
}

// decoder reads the parts of one value. After an error it reads nothing but zeros.
type decoder struct {
	*codec
	in   []byte
	seen []any // the containers, in their order
	err  error
}

func (d *decoder) short() {
	d.in, d.err = nil, errShort
}

func (d *decoder) tag() byte {
	if len(d.in) == 0 {
		d.short()
		return isNil
	}
	is := d.in[0]
	d.in = d.in[1:]
	return is
}

func (d *decoder) uint() uint64 {
	out, n := binary.Uvarint(d.in)
	if n <= 0 {
		d.short()
		return 0
	}
	d.in = d.in[n:]
	return out
}

func (d *decoder) int() int64 {
	out, n := binary.Varint(d.in)
	if n <= 0 {
		d.short()
		return 0
	}
	d.in = d.in[n:]
	return out
}

// size reads how much follows, of which each takes a byte at least.
func (d *decoder) size() int {
	n := d.uint()
	if n > uint64(len(d.in)) {
		d.short()
		return 0
	}
	return int(n) //nolint:gosec // no more than the bytes there are
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.in) {
		d.short()
		return nil
	}
	out := d.in[:n]
	d.in = d.in[n:]
	return out
}

func (d *decoder) text() string {
	switch place := d.uint(); {
	case place == 0:
		return string(d.bytes(d.size()))
	case place <= uint64(len(d.words)):
		return d.words[place-1]
	}
	d.short()
	return ""
}

// json reads a value of an object.
func (d *decoder) json() any {
	switch d.tag() {
	case isTrue:
		return true
	case isFalse:
		return false
	case isInt:
		return d.int()
	case isFloat:
		if bits := d.bytes(8); bits != nil {
			return math.Float64frombits(binary.BigEndian.Uint64(bits))
		}
	case isText:
		return d.text()
	case isMap:
		n := d.size()
		out := make(map[string]any, n)
		d.seen = append(d.seen, out)
		for range n {
			key := d.text()
			out[key] = d.json()
		}
		return out
	case isList:
		out := make([]any, d.size())
		if len(out) > 0 {
			d.seen = append(d.seen, out)
		}
		for i := range out {
			out[i] = d.json()
		}
		return out
	case isShared:
		return d.shared()
	}
	return nil
}

func (d *decoder) shared() any {
	place := d.uint()
	if place >= uint64(len(d.seen)) {
		d.short()
		return nil
	}
	return d.seen[place]
}

// decode reads a value of which the type is known.
func (d *decoder) decode(to reflect.Value) error {
	switch to.Kind() { //nolint:exhaustive // as encode writes them
	case reflect.Bool:
		is, _ := d.json().(bool)
		to.SetBool(is)
	case reflect.Int:
		to.SetInt(d.int())
	case reflect.String:
		to.SetString(d.text())
	case reflect.Slice:
		if d.tag() == isList {
			n := d.size()
			to.Set(reflect.MakeSlice(to.Type(), n, n))
			d.elements(to)
		}
	case reflect.Array:
		d.elements(to)
	case reflect.Struct:
		d.structure(to)
	case reflect.Pointer:
		d.pointer(to)
	case reflect.Interface:
		d.dynamic(to)
	}
	return d.err
}

func (d *decoder) elements(to reflect.Value) {
	for i := range to.Len() {
		_ = d.decode(to.Index(i)) // d.err is there at the end
	}
}

func (d *decoder) structure(to reflect.Value) {
	if to.Type() == reflect.TypeFor[engine.RuleList]() {
		d.list(to.Addr().Interface().(*engine.RuleList))
		return
	}
	set := d.uint()
	for i, at := range d.fields(to.Type()) {
		if set&(1<<i) != 0 {
			_ = d.decode(to.Field(at))
		}
	}
}

func (d *decoder) list(to *engine.RuleList) {
	switch place := d.uint(); {
	case place == 0:
		_ = d.decode(reflect.ValueOf(&to.List).Elem())
	case place <= uint64(len(d.lists)):
		to.List = d.lists[place-1]
	default:
		d.short()
	}
	_ = d.decode(reflect.ValueOf(&to.Except).Elem())
}

func (d *decoder) pointer(to reflect.Value) {
	switch d.tag() {
	case isObject:
		out := reflect.New(to.Type().Elem())
		to.Set(out)
		if u, is := out.Interface().(*unstructured.Unstructured); is {
			d.seen = append(d.seen, u)
			u.Object, _ = d.json().(map[string]any)
			return
		}
		_ = d.decode(out.Elem())
	case isShared:
		if u := reflect.ValueOf(d.shared()); u.IsValid() && u.Type() == to.Type() {
			to.Set(u)
		}
	}
}

func (d *decoder) dynamic(to reflect.Value) {
	switch to.Type() {
	case reflect.TypeFor[error]():
		if d.tag() == isText {
			to.Set(reflect.ValueOf(&stepError{d.text(), d.text()}))
		}
	case reflect.TypeFor[value.Value]():
		to.Set(reflect.ValueOf(value.NewValueInterface(d.json())))
	default:
		if v := d.json(); v != nil {
			to.Set(reflect.ValueOf(v))
		}
	}
}
