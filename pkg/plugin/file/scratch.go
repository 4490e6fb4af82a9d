package file

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os"
	"sync"
)

// Scratch keeps texts in a temporary file instead of in memory. They may have values of Secrets: each is encrypted, with a key
// that only the process has, and one that somebody else has changed is not read. The zero value is ready for use. It is safe
// for concurrent use. Close frees the space.
type Scratch struct {
	// InMemory is how many bytes stay in memory, before there is a file.
	InMemory int64

	mu      sync.Mutex
	head    []byte
	file    *os.File // nil until there is a text for it
	seal    cipher.AEAD
	end     int64
	unnamed bool             // nothing is left of the file once it is closed
	refused map[int64][]byte // what the disk did not take, by place: the n-th one is at -n
	last    int64            // the place of the last one
}

// Place is where a text is in a Scratch. The zero Place is none.
type Place struct{ at, size int64 }

// Append adds a text, which is not empty, and returns its place. The text need not be kept. An error says why the text stays in
// memory: it is at its place nevertheless, until Free.
func (s *Scratch) Append(text []byte) (Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := (Place{at: s.end, size: int64(len(text))}); s.end+p.size <= s.InMemory {
		s.head = append(s.head, text...)
		s.end += p.size
		return p, nil
	}
	if err := s.open(); err != nil {
		return s.refuse(text), err
	}
	sealed := s.seal.Seal(make([]byte, 0, len(text)+s.seal.Overhead()), s.nonce(s.end), text, nil)
	p := Place{at: s.end, size: int64(len(sealed))}
	s.end += p.size // also where writing fails: a part of the text may be there, under its nonce
	if _, err := s.file.WriteAt(sealed, p.at); err != nil {
		return s.refuse(text), err
	}
	return p, nil
}

// refuse keeps a text in memory.
func (s *Scratch) refuse(text []byte) Place {
	if s.refused == nil {
		s.refused = map[int64][]byte{}
	}
	s.last--
	s.refused[s.last] = bytes.Clone(text)
	return Place{at: s.last, size: int64(len(text))}
}

// Free lets go of a text if it is one that the disk did not take. It is not read any more.
func (s *Scratch) Free(p Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, p.at)
}

func (s *Scratch) open() (err error) {
	if s.file != nil {
		return nil
	}
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return err
	}
	if s.seal, err = cipher.NewGCM(block); err != nil {
		return err
	}
	if s.file, err = os.CreateTemp("", "kubectl-mutate-*"); err != nil {
		return err
	}
	// Then nothing stays behind a process that is killed. Windows removes no file that is open; there, Close does.
	s.unnamed = os.Remove(s.file.Name()) == nil
	return nil
}

// nonce is that of the text at a place. No two texts begin at the same.
func (s *Scratch) nonce(at int64) []byte {
	nonce := make([]byte, s.seal.NonceSize())
	binary.BigEndian.PutUint64(nonce, uint64(at)) //nolint:gosec // no place is negative
	return nonce
}

// Read returns the text at a place, which must not be changed.
func (s *Scratch) Read(p Place) ([]byte, error) {
	s.mu.Lock()
	head, file := s.head, s.file
	refused := s.refused[p.at]
	s.mu.Unlock()
	switch end := p.at + p.size; {
	case refused != nil:
		return refused, nil
	case p.at >= 0 && end <= int64(len(head)):
		return head[p.at:end:end], nil
	case p.at < 0 || file == nil:
		return nil, os.ErrClosed
	}
	sealed := make([]byte, p.size)
	if _, err := file.ReadAt(sealed, p.at); err != nil {
		return nil, err
	}
	return s.seal.Open(sealed[:0], s.nonce(p.at), sealed, nil)
}

// Close forgets everything.
func (s *Scratch) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.file
	s.head, s.file, s.end, s.refused = nil, nil, 0, nil
	if f == nil {
		return nil
	}
	err := f.Close()
	if !s.unnamed {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
