package apply

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"
)

// packer packs texts that are much alike: the first one is the dictionary of the others. The zero value has none yet.
// It is safe for concurrent use.
type packer struct {
	mu    sync.Mutex
	first []byte
	flate *flate.Writer
	out   bytes.Buffer
}

// pack returns a text packed; nil if that cannot be done.
func (p *packer) pack(text []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Reset()
	if p.flate == nil {
		p.first = bytes.Clone(text)
		p.flate, _ = flate.NewWriterDict(&p.out, 2, p.first) // the fastest level that uses the dictionary
	} else {
		p.flate.Reset(&p.out)
	}
	if _, err := p.flate.Write(text); err != nil || p.flate.Close() != nil {
		return nil
	}
	return bytes.Clone(p.out.Bytes())
}

// unpackers are used again: each has a window of 32 KiB.
//
//nolint:gochecknoglobals // what one has read before does not matter
var unpackers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// unpack returns the text that was packed.
func (p *packer) unpack(packed []byte) ([]byte, error) {
	p.mu.Lock()
	first := p.first
	p.mu.Unlock()
	unpack := unpackers.Get().(io.ReadCloser) // it is what New makes
	defer unpackers.Put(unpack)
	if err := unpack.(flate.Resetter).Reset(bytes.NewReader(packed), first); err != nil {
		return nil, err
	}
	return io.ReadAll(unpack)
}
