package plan

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// maxInMemory is how many bytes of the entries of a plan stay in memory, so that small plans need no file.
const maxInMemory = 1 << 20

// Entries are those of a plan, in its order. They are kept in a temporary file, which is encrypted, since there may be very
// many. The zero value has none, as nil. It is safe for concurrent readers.
type Entries struct {
	scratch file.Scratch
	places  []file.Place
	whole   map[int]*Entry // those that would not come out of the file as they are
	secrets bool
}

// Add adds an entry, and reports whether it stays in memory.
func (s *Entries) Add(e *Entry) (inMemory bool) {
	text, err := json.Marshal(e)
	if err == nil {
		var again Entry
		if again, err = readEntry(text); err == nil && reflect.DeepEqual(*e, again) {
			s.add(text, e)
			return false
		}
	}
	if s.whole == nil {
		s.whole = map[int]*Entry{}
	}
	s.whole[len(s.places)] = e
	s.places, s.secrets = append(s.places, file.Place{}), s.secrets || e.HoldsSecrets()
	return true
}

// add adds an entry with its text. Where there can be no file, the text stays in memory.
func (s *Entries) add(text []byte, e *Entry) {
	s.scratch.InMemory = maxInMemory
	place, _ := s.scratch.Append(text)
	s.places, s.secrets = append(s.places, place), s.secrets || e.HoldsSecrets()
}

// readEntry reads the text of an entry, and checks it.
func readEntry(text []byte) (e Entry, err error) {
	if err = json.Unmarshal(text, &e); err == nil {
		err = e.Validate()
	}
	return e, err
}

// Len returns the number of entries.
func (s *Entries) Len() int {
	if s == nil {
		return 0
	}
	return len(s.places)
}

// HoldSecrets reports whether an entry has values that were made of a Secret, or withholds them.
func (s *Entries) HoldSecrets() bool { return s != nil && s.secrets }

// At returns an entry by its place, from 0. The error is that of the temporary file.
func (s *Entries) At(i int) (Entry, error) {
	if e := s.whole[i]; e != nil {
		return *e, nil
	}
	text, err := s.scratch.Read(s.places[i])
	if err != nil {
		return Entry{}, fmt.Errorf("reading what is planned: %w", err)
	}
	return readEntry(text)
}

// All returns the entries. After an error there is none.
func (s *Entries) All() iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for i := range s.Len() {
			e, err := s.At(i)
			if !yield(&e, err) || err != nil {
				return
			}
		}
	}
}

// Close frees the file.
func (s *Entries) Close() error {
	if s == nil {
		return nil
	}
	s.places, s.whole = nil, nil
	return s.scratch.Close()
}
