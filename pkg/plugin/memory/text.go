package memory

import "errors"

const (
	// nodeSize is what a value costs beside its text.
	nodeSize = 128
	// defaultInputs is how much a run may read if there is no limit of memory.
	defaultInputs = 8 << 30
)

// ErrTooLarge is the error for inputs that exceed a Budget.
var ErrTooLarge = errors.New("what is read at once needs more memory than there is: read fewer objects or policies, or raise GOMEMLIMIT")

// Nodes returns how many values a YAML or JSON text has at most, but for a factor of two: it
// counts what may start or end one, also inside of texts. It is far cheaper than
// decoding.
func Nodes(text []byte) int {
	n := 1
	var before byte
	for _, c := range text {
		n += int(marks[c] + pairs[before]&second[c])
		before = c
	}
	return n
}

// What starts or ends a value: indicators of YAML and its line breaks. Some of them are pairs of
// bytes: "- ", "? ", U+0085, and U+2028 with its neighbours.
//
//nolint:gochecknoglobals // immutable tables
var (
	marks  = [256]uint8{'\n': 1, '\r': 1, ',': 1, ':': 1, '[': 1, '{': 1}
	pairs  = [256]uint8{'-': 1, '?': 1, 0xC2: 1, 0xE2: 1}
	second = [256]uint8{' ': 1, '\t': 1, 0x85: 1, 0x80: 1}
)

// Budget bounds what the inputs of a run become. The zero value is ready to use. It must not be
// used concurrently.
type Budget struct {
	Limit int64 // bytes of all inputs; zero stands for the half of the limit of SetLimit

	spent int64
}

// Spend takes what a number of values with a number of bytes becomes from the budget. The error
// is ErrTooLarge.
func (b *Budget) Spend(nodes, size int) error {
	cost := int64(nodes)*nodeSize + int64(size)
	if b.Limit == 0 {
		b.Limit = defaultInputs
		if limit := Limit(); limit > 0 {
			b.Limit = limit / 2
		}
	}
	if b.spent += cost; b.spent > b.Limit {
		return ErrTooLarge
	}
	return nil
}
