package evaluation

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"maps"
	"slices"
	"strconv"
)

// digest identifies a state of an object.
type digest [sha256.Size]byte

// digests are those of lists, which many states of an object share, by their first element. Nothing changes a list in place.
type digests map[*any]listDigest

type listDigest struct {
	length int
	digest digest
}

// of returns the digest of a value of JSON.
func (d *digests) of(value any) (out digest) {
	w := digestWriter{Hash: sha256.New(), lists: d}
	w.value(value)
	w.Sum(out[:0])
	return out
}

// ofList is of for a list, which it remembers.
func (d *digests) ofList(list []any) digest {
	if len(list) == 0 {
		return digest{}
	}
	if known := (*d)[&list[0]]; known.length == len(list) {
		return known.digest
	}
	w := digestWriter{Hash: sha256.New(), lists: d}
	for _, element := range list {
		w.value(element)
	}
	one := listDigest{length: len(list)}
	w.Sum(one.digest[:0])
	if *d == nil {
		*d = digests{}
	}
	(*d)[&list[0]] = one
	return one.digest
}

// digestWriter writes values so that two that differ are written differently. Numbers are the same whatever their type.
type digestWriter struct {
	hash.Hash

	lists *digests
	text  []byte // its memory serves the next value
}

func (w *digestWriter) value(value any) {
	switch v := value.(type) {
	case map[string]any:
		w.head('m', len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			w.value(name)
			w.value(v[name])
		}
	case []any:
		w.head('l', len(v))
		of := w.lists.ofList(v)
		w.Write(of[:])
	case string:
		w.head('s', len(v))
		w.text = append(w.text[:0], v...)
		w.Write(w.text)
	case int64:
		w.scalar(strconv.AppendInt(w.text[:0], v, 10))
	case float64:
		w.scalar(strconv.AppendFloat(w.text[:0], v, 'f', -1, 64))
	default:
		text, _ := json.Marshal(v)
		w.scalar(text)
	}
}

func (w *digestWriter) head(kind byte, size int) {
	w.text = binary.AppendUvarint(append(w.text[:0], kind), uint64(size))
	w.Write(w.text)
}

func (w *digestWriter) scalar(text []byte) {
	w.text = append(text, 0)
	w.Write(w.text)
}
