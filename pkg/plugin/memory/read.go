package memory

import (
	"cmp"
	"errors"
	"io"
	"slices"
)

// How many bytes of a text of unknown size are read at once, first and at most.
const (
	firstPiece = 4 << 10
	largePiece = 1 << 20
)

// ErrTooLong is the error for a text with more bytes than a reader wants.
var ErrTooLong = errors.New("it does not end within the limit")

// ReadAll reads a text of at most limit bytes, and takes what it becomes from the budget while it reads: so what has no end takes no more
// memory than that. Size is how many bytes are expected; 0 if that is not known. The error is ErrTooLong, ErrTooLarge or one of in.
func (b *Budget) ReadAll(in io.Reader, size, limit int) ([]byte, error) {
	if size > limit {
		return nil, ErrTooLong
	}
	if then := *b; then.Spend(0, size) != nil { // before there is room for it
		return nil, ErrTooLarge
	}
	var pieces [][]byte
	left := limit
	for room := cmp.Or(size, firstPiece) + 1; ; room = min(max(2*room, firstPiece), largePiece) {
		next := make([]byte, room)
		n, err := io.ReadFull(in, next)
		pieces = append(pieces, next[:n])
		if left -= n; left < 0 {
			return nil, ErrTooLong
		}
		if err := b.Spend(Nodes(next[:n]), n); err != nil {
			return nil, err
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			if len(pieces) == 1 {
				return pieces[0], nil
			}
			return slices.Concat(pieces...), nil
		case err != nil:
			return nil, err
		}
	}
}
