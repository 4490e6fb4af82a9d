package report

import (
	"fmt"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// maxHeld bounds the bytes in memory. The rest goes to a temporary file.
const maxHeld = 4 << 20

// Spool collects texts that come in any order by section, and holds a bounded part of
// them in memory. The zero value is ready for use. Close frees what it holds on disk.
type Spool struct {
	sections map[string]*section
	held     int
	limit    int // maxHeld, or less in tests
	scratch  file.Scratch
}

type section struct {
	parts []file.Place // in order
	held  []byte       // what comes after them
}

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

// spill moves what is in memory to the disk. The order of the sections there does not
// matter: each knows its own parts.
func (s *Spool) spill() error {
	for _, at := range s.sections {
		if len(at.held) == 0 {
			continue
		}
		place, err := s.scratch.Append(at.held)
		if err != nil {
			return fmt.Errorf("holding a report that is too large for memory: %w", err)
		}
		at.parts = append(at.parts, place)
		at.held = nil
	}
	s.held = 0
	return nil
}

// Copy writes a section out.
func (s *Spool) Copy(w io.Writer, name string) error {
	at := s.sections[name]
	if at == nil {
		return nil
	}
	for _, p := range at.parts {
		text, err := s.scratch.Read(p)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	_, err := w.Write(at.held)
	return err
}

// Close forgets everything.
func (s *Spool) Close() error {
	s.sections = nil
	return s.scratch.Close()
}
