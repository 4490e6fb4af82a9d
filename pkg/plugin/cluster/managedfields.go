package cluster

import (
	"strings"
	"sync"
)

// fieldSets are the parts of managedFields that objects of a page share: four of five maps of a Pod are in its managedFields, and most of
// these are equal to some in others. They must not be changed, as nothing that is read may be. It is safe for concurrent use.
type fieldSets struct {
	mu    sync.Mutex
	known map[string]map[string]any // by their text
}

// sharedLength is how long the text of a part is at most that objects share.
const sharedLength = 1 << 10

func (f *fieldSets) get(text string) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[text]
}

func (f *fieldSets) put(text string, set map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[text] = set
}

// managedFieldsDepth is how deep fieldsV1 is in an object: metadata.managedFields[].fieldsV1.
const managedFieldsDepth = 4

func (s *scanner) managedFields() (any, error) {
	s.inFields = true
	value, err := s.value()
	s.inFields = false
	return value, err
}

// fieldSet decodes a set of fields, or a part of one, unless that was done before.
func (s *scanner) fieldSet() (map[string]any, error) {
	text := s.shortObject()
	if text == "" {
		return s.mapValue()
	}
	if set := s.shared.get(text); set != nil {
		s.pos += len(text)
		return set, nil
	}
	own := scanner{text: strings.Clone(text), depth: s.depth, shared: s.shared, inFields: true} // keeps no more than its text
	set, err := own.mapValue()
	if err != nil || own.pos != len(text) {
		s.shared = nil
		return s.mapValue() // which knows where the error is
	}
	s.shared.put(own.text, set)
	s.pos += len(text)
	return set, nil
}

// shortObject returns the text of the object that begins here, if that is valid; none if it is longer than what is shared.
func (s *scanner) shortObject() string {
	text := s.text[s.pos:min(len(s.text), s.pos+sharedLength)]
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return text[:i+1]
			}
		}
	}
	return ""
}
