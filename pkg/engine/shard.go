package engine

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// Shard is one of several parts into which objects are divided. Each object is in exactly one of them: all
// objects of a namespace are in the shard
//
//	FNV-1a(namespace) mod Of
//
// with the 64-bit hash of the namespace's name in UTF-8, and objects without a namespace in that of their own
// name; so a Namespace is where its objects are. The zero value is all objects.
type Shard struct {
	Index int // from 0
	Of    int // how many shards there are
}

// MaxShards is how many parts there may be: as many as a Job of Kubernetes with a limit of failures
// for each of its indexes.
const MaxShards = 100_000

// UnmarshalText reads INDEX/COUNT.
func (s *Shard) UnmarshalText(text []byte) error {
	index, count, ok := strings.Cut(string(text), "/")
	i, badIndex := strconv.ParseUint(index, 10, 31)
	of, badCount := strconv.ParseUint(count, 10, 31)
	if !ok || badIndex != nil || badCount != nil || i >= of || of > MaxShards {
		return fmt.Errorf("%q is no shard: use INDEX/COUNT, such as 0/4, with an INDEX from 0 to COUNT-1 and a COUNT of at most %d", text, MaxShards)
	}
	*s = Shard{Index: int(i), Of: int(of)} //nolint:gosec // they have 31 bits
	return nil
}

// MarshalText writes INDEX/COUNT, and nothing for the zero value.
func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is INDEX/COUNT, and empty for the zero value.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// Whole reports whether all objects are in the shard.
func (s Shard) Whole() bool { return s.Of <= 1 }

// Has reports whether an object is in the shard. Namespace is empty for objects that have none.
func (s Shard) Has(namespace, name string) bool {
	if s.Whole() {
		return true
	}
	if namespace != "" {
		name = namespace
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))                     // it never fails
	return h.Sum64()%uint64(s.Of) == uint64(s.Index) //nolint:gosec // neither is negative
}
