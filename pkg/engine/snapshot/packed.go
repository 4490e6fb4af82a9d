// This file keeps JSON values as strings, which take a tenth of the memory of maps and lists.

package snapshot

import (
	"encoding/binary"
	"math"
	"strings"
)

// Value is a JSON value as a string. It takes a tenth of the memory of maps and lists, and the garbage
// collector skips it.
type Value string

// The type of a packed value, in the first byte. The elements of a map or a list follow their number.
const (
	packedMap byte = iota
	packedList
	packedText  // length and bytes
	packedKnown // the number of a value of the dictionary
	packedInt
	packedFloat // eight bytes
	packedTrue
	packedFalse
	packedNull
)

// The limits of a dictionary.
const (
	maxKnown      = 1 << 15 // strings, besides the keys of maps
	maxKnownText  = 40      // their bytes
	maxKnownTrees = 1 << 12 // maps and lists
	maxKnownTree  = 16      // their bytes: up to four fields, as in a port or a mount
)

// Dictionary has the parts that many objects share: keys, short strings, and small maps and lists. Only Pack
// changes it. The zero value is ready for use.
type Dictionary struct {
	values  []any
	numbers map[string]uint64 // of strings
	trees   map[string]uint64 // of maps and lists, by their packed form
}

// Pack packs a value. It reports false for types that decoding JSON does not make.
func (d *Dictionary) Pack(value any) (Value, bool) {
	if d.numbers == nil {
		d.numbers, d.trees = map[string]uint64{}, map[string]uint64{}
	}
	text, ok := d.append(nil, value)
	return Value(text), ok
}

func (d *Dictionary) append(to []byte, value any) (_ []byte, ok bool) {
	start := len(to)
	switch v := value.(type) {
	case map[string]any:
		to = binary.AppendUvarint(append(to, packedMap), uint64(len(v)))
		for key, below := range v {
			to = binary.AppendUvarint(to, d.add(key))
			if to, ok = d.append(to, below); !ok {
				return nil, false
			}
		}
		return d.share(to, start), v != nil
	case []any:
		to = binary.AppendUvarint(append(to, packedList), uint64(len(v)))
		for _, below := range v {
			if to, ok = d.append(to, below); !ok {
				return nil, false
			}
		}
		return d.share(to, start), v != nil
	case string:
		return d.appendText(to, v), true
	case int64:
		return binary.AppendVarint(append(to, packedInt), v), true
	case float64:
		return binary.LittleEndian.AppendUint64(append(to, packedFloat), math.Float64bits(v)), true
	case bool:
		if v {
			return append(to, packedTrue), true
		}
		return append(to, packedFalse), true
	case nil:
		return append(to, packedNull), true
	}
	return nil, false
}

// share replaces a small map or list below the whole value, packed from start on, by its number.
func (d *Dictionary) share(to []byte, start int) []byte {
	number, known := d.trees[string(to[start:])]
	if start == 0 || !known && (len(to)-start > maxKnownTree || len(d.trees) == maxKnownTrees) {
		return to
	}
	if !known {
		tree := string(to[start:])
		number = uint64(len(d.values))
		d.trees[tree], d.values = number, append(d.values, d.Unpack(Value(tree)))
	}
	return binary.AppendUvarint(append(to[:start], packedKnown), number)
}

func (d *Dictionary) appendText(to []byte, text string) []byte {
	number, known := d.numbers[text]
	if !known && len(text) <= maxKnownText && len(d.values) < maxKnown {
		number, known = d.add(text), true
	}
	if known {
		return binary.AppendUvarint(append(to, packedKnown), number)
	}
	return append(binary.AppendUvarint(append(to, packedText), uint64(len(text))), text...)
}

// add returns the number of a string, and adds it if it is new.
func (d *Dictionary) add(text string) uint64 {
	number, known := d.numbers[text]
	if !known {
		text = strings.Clone(text) // it may be a part of a document
		number = uint64(len(d.values))
		d.numbers[text], d.values = number, append(d.values, text)
	}
	return number
}

// Unpack returns the packed value. It is the caller's, but its maps and lists are shared, and must not be
// modified.
func (d *Dictionary) Unpack(p Value) any {
	value, _ := d.unpackFirst(p)
	return value
}

// unpackFirst returns the first value of a string, and the rest.
func (d *Dictionary) unpackFirst(p Value) (any, Value) {
	kind, p := p[0], p[1:]
	switch kind {
	case packedMap:
		length, p := uvarint(p)
		out := make(map[string]any, length)
		for range length {
			var key string
			key, p = d.key(p)
			out[key], p = d.unpackFirst(p)
		}
		return out, p
	case packedList:
		length, p := uvarint(p)
		out := make([]any, length)
		for i := range out {
			out[i], p = d.unpackFirst(p)
		}
		return out, p
	case packedText:
		length, p := uvarint(p)
		return string(p[:length]), p[length:]
	case packedKnown:
		number, p := uvarint(p)
		return d.values[number], p
	case packedInt:
		number, p := uvarint(p)
		return int64(number>>1) ^ -int64(number&1), p // like binary.Varint
	case packedFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64([]byte(p[:8]))), p[8:]
	case packedNull:
		return nil, p
	}
	return kind == packedTrue, p
}

func (d *Dictionary) key(p Value) (string, Value) {
	number, p := uvarint(p)
	key, _ := d.values[number].(string)
	return key, p
}

// uvarint is binary.Uvarint for a string.
func uvarint(p Value) (uint64, Value) {
	var out uint64
	for i := 0; ; i++ {
		out |= uint64(p[i]&0x7f) << (7 * i)
		if p[i] < 0x80 {
			return out, p[i+1:]
		}
	}
}
