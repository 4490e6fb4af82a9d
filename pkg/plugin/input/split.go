package input

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

const byteOrderMark = "\uFEFF"

// maxRoom is the maximum of room for documents, in bytes, besides a larger one.
const maxRoom = 64 << 10

// part is the content of one YAML document, or of consecutive JSON documents.
type part struct {
	text    []byte
	line    int    // of the first byte, counted from 1 in the file
	decoded *value // its value, if it was decoded ahead
}

// splitter cuts a stream at its document markers, so that only a batch of documents is in memory. A line
// that starts with "---" is always a marker, even within a block scalar (YAML 1.2.2, 9.1.2: c-forbidden).
type splitter struct {
	from    *bufio.Reader
	limit   int
	line    int    // lines read so far
	room    []byte // for the document that is read
	pending []byte // a marker followed by content, which belongs to the next document
	done    bool
}

// next returns the next document that has content, or io.EOF.
func (s *splitter) next() (part, error) {
	if s.line == 0 && !s.done {
		if err := s.checkEncoding(); err != nil {
			return part{}, err
		}
	}
	for !s.done || s.pending != nil {
		p, err := s.cut()
		if err != nil {
			s.done = true
			return part{}, err
		}
		if s.room = nil; cap(p.text) <= maxRoom {
			s.room, p.text = p.text, bytes.Clone(p.text)
		}
		p.text = bytes.TrimPrefix(p.text, []byte(byteOrderMark))
		if hasContent(p.text) {
			return p, nil
		}
	}
	return part{}, io.EOF
}

// cut reads up to the next marker or the end.
func (s *splitter) cut() (part, error) {
	p := part{line: s.line + 1, text: s.room[:0]}
	if s.pending != nil {
		p.text, p.line, s.pending = append(p.text, s.pending...), s.line, nil
	}
	for {
		line, err := s.readLine(s.limit - len(p.text))
		if err != nil && !errors.Is(err, io.EOF) {
			return part{}, &Error{Line: p.line, Err: err}
		}
		s.done = err != nil
		if len(line) > 0 {
			s.line++
		}
		if content, isMarker := marker(line); isMarker {
			if content {
				s.pending = bytes.Clone(line)
			}
			return p, nil
		}
		p.text = append(p.text, line...)
		if s.done {
			return p, nil
		}
	}
}

// readLine reads one line within the room that is left. The next call may overwrite it.
func (s *splitter) readLine(room int) ([]byte, error) {
	var line []byte
	for {
		piece, err := s.from.ReadSlice('\n')
		if len(line)+len(piece) > room {
			return nil, fmt.Errorf("the document is larger than %d bytes: split it with --- lines, or lists into their elements", s.limit)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if line == nil {
				return piece, err
			}
			return append(line, piece...), err
		}
		line = append(line, piece...)
	}
}

// checkEncoding returns a clear error for UTF-16, which some shells write by default.
func (s *splitter) checkEncoding() error {
	start, err := s.from.Peek(2)
	if err != nil {
		return nil // shorter than a mark; reading finds other errors
	}
	if mark := string(start); mark == "\xff\xfe" || mark == "\xfe\xff" {
		s.done = true
		return &Error{Line: 1, Err: errors.New("the text is UTF-16: save it as UTF-8")}
	}
	return nil
}

// marker reports whether a line starts a document, and whether the document's content begins on the same
// line.
func marker(line []byte) (content, isMarker bool) {
	line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok {
		return false, false
	}
	trimmed := bytes.TrimSpace(rest)
	if len(trimmed) > 0 && len(trimmed) == len(bytes.TrimRight(rest, " \t\r\n")) {
		return false, false // "---x" is text
	}
	return len(trimmed) > 0 && trimmed[0] != '#', true
}

// hasContent reports whether text has more than comments, directives and blank lines.
func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' && !bytes.Equal(line, []byte("...")) {
			return true
		}
	}
	return false
}

// The limits of a batch: what is decoded before it is counted stays small.
const (
	batchDocuments = 64
	batchBytes     = 128 << 10
)

// batch returns the next documents, the small ones decoded in parallel, since decoding takes most of the
// time. The error, or io.EOF, follows them.
func (s *splitter) batch() (parts []part, err error) {
	for size := 0; len(parts) < batchDocuments && size < batchBytes; {
		var p part
		if p, err = s.next(); err != nil {
			break
		}
		parts = append(parts, p)
		size += len(p.text)
	}
	if len(parts) < 2 {
		return parts, err
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(parts)) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(parts)); i = next.Add(1) - 1 {
				parts[i].decodeAhead()
			}
		})
	}
	all.Wait()
	return parts, err
}

// ahead begins to read the next batch, and returns a function that waits for it.
func (s *splitter) ahead() (wait func() (parts []part, err error)) {
	var parts []part
	var err error
	var reading sync.WaitGroup
	reading.Go(func() { parts, err = s.batch() })
	return func() ([]part, error) {
		reading.Wait()
		return parts, err
	}
}

// decodeAhead decodes a document as decode would, unless it is large or takes more than its content.
func (p *part) decodeAhead() {
	if len(p.text) > batchBytes || looksLikeJSON(p.text) || bytes.Contains(p.text, []byte("items")) {
		return
	}
	if v, ok := decodeBlock(*p, 0); ok {
		p.decoded = &v
	}
}

// Part is the content of one YAML document, or of one of several consecutive JSON values.
type Part struct {
	Text   []byte
	Offset int // in the file
	Line   int // of the first byte, counted from 1 in the file
	JSON   bool
}

// Parts cuts the content of a file as Read does. The error is an *Error without a path.
func Parts(text []byte) ([]Part, error) {
	lines := []int{0} // where each starts
	for i, c := range text {
		if c == '\n' {
			lines = append(lines, i+1)
		}
	}
	s := splitter{from: bufio.NewReader(bytes.NewReader(text)), limit: len(text) + 1}
	var out []Part
	for {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		offset := lines[p.line-1]
		if !bytes.HasPrefix(text[offset:], p.text) {
			offset += len(byteOrderMark)
		}
		if !looksLikeJSON(p.text) {
			out = append(out, Part{p.text, offset, p.line, false})
			continue
		}
		for rest := p; ; {
			skip := len(rest.text) - len(bytes.TrimLeft(rest.text, " \t\r\n"))
			if rest = rest.from(skip); len(rest.text) == 0 {
				break
			}
			decoder := json.NewDecoder(bytes.NewReader(rest.text))
			at := offset + len(p.text) - len(rest.text)
			if decoder.Decode(new(json.RawMessage)) != nil { // YAML's flow style, which may have comments
				out = append(out, Part{rest.text, at, rest.line, false})
				break
			}
			end := int(decoder.InputOffset())
			out = append(out, Part{rest.text[:end], at, rest.line, true})
			rest = rest.from(end)
		}
	}
}
