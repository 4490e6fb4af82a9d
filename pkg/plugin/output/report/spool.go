package report

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxHeld bounds the bytes in memory. The rest goes to a temporary file.
const maxHeld = 4 << 20

// Spool collects texts that come in any order by section, and holds a bounded part of
// them in memory. The zero value is ready for use. Close frees what it holds on disk, which
// is encrypted with a key in memory: the texts may have values of Secrets.
type Spool struct {
	sections map[string]*section
	held     int
	limit    int // maxHeld, or less in tests
	file     *os.File
	key      cipher.Block // of the file
	end      int64        // of the file
	unnamed  bool         // nothing is left of the file once it is closed
}

type section struct {
	parts []part // in the file, in order
	held  []byte // what comes after them
}

type part struct{ from, length int64 }

// Add appends a text to a section.
func (s *Spool) Add(name, text string) error {
	if s.sections == nil {
		s.sections = map[string]*section{}
	}
	if s.limit == 0 {
		s.limit = maxHeld
	}
	at := s.sections[name]
	if at == nil {
		at = &section{}
		s.sections[name] = at
	}
	at.held = append(at.held, text...)
	s.held += len(text)
	if s.held <= s.limit {
		return nil
	}
	return s.spill()
}

// spill moves what is in memory to the file. The order of the sections there does not
// matter: each knows its own parts.
func (s *Spool) spill() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "kubectl-mutate-*"); err != nil {
			return fmt.Errorf("holding a report that is too large for memory: %w", err)
		}
		var key [32]byte
		_, _ = rand.Read(key[:]) // never fails
		if s.key, err = aes.NewCipher(key[:]); err != nil {
			return fmt.Errorf("holding a report that is too large for memory: %w", err)
		}
		// Then nothing stays behind a process that is killed. Windows removes no file
		// that is open; there, Close does.
		s.unnamed = os.Remove(s.file.Name()) == nil
	}
	for _, at := range s.sections {
		if len(at.held) == 0 {
			continue
		}
		s.stream(s.end).XORKeyStream(at.held, at.held)
		if _, err := s.file.WriteAt(at.held, s.end); err != nil {
			return fmt.Errorf("holding a report that is too large for memory: %w", err)
		}
		length := int64(len(at.held))
		at.parts = append(at.parts, part{from: s.end, length: length})
		s.end += length
		at.held = nil
	}
	s.held = 0
	return nil
}

// stream encrypts or decrypts the part of the file that begins at a place. No two parts begin at the same.
func (s *Spool) stream(from int64) cipher.Stream {
	var iv [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[:], uint64(from)) // the rest counts the blocks of the part
	return cipher.NewCTR(s.key, iv[:])
}

// Copy writes a section out.
func (s *Spool) Copy(w io.Writer, name string) error {
	at := s.sections[name]
	if at == nil {
		return nil
	}
	for _, p := range at.parts {
		if _, err := io.Copy(w, cipher.StreamReader{S: s.stream(p.from), R: io.NewSectionReader(s.file, p.from, p.length)}); err != nil {
			return err
		}
	}
	_, err := w.Write(at.held)
	return err
}

// Close forgets everything.
func (s *Spool) Close() error {
	s.sections = nil
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	err := f.Close()
	if !s.unnamed {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
