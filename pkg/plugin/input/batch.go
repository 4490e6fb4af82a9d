package input

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
)

// A batch ends where it has one of these: what is decoded before it is counted stays small.
const (
	batchDocuments = 64
	batchBytes     = 128 << 10
)

// batch returns the next documents, of which small ones are decoded: side by side, for that is most of the time that
// reading takes. Behind them there is an error, or io.EOF.
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

// decodeAhead decodes a document as decode would, unless it is large or that takes more than its text.
func (p *part) decodeAhead() {
	if len(p.text) > batchBytes || looksLikeJSON(p.text) || mayBeList(p.text) {
		return
	}
	if v, ok := decodeBlock(*p, 0); ok {
		p.decoded = &v
	}
}

func mayBeList(text []byte) bool { return bytes.Contains(text, []byte("items")) }
