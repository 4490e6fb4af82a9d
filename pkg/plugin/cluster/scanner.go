package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json"
)

// maxDepth is the nesting at which apimachinery's decoder gives up, too.
const maxDepth = 10_000

// scanner walks over JSON text. The text is a string so that the strings in it
// can be handed out without copying. Literals that are not plain (escapes,
// fractions, huge numbers) go to apimachinery's decoder one by one, so that
// there is one set of rules for them.
type scanner struct {
	text  string
	pos   int
	depth int

	shared   *fieldSets // nil to share nothing
	inFields bool       // in managedFields, of which it shares
}

func (s *scanner) fail(expected string) error {
	return fmt.Errorf("invalid JSON at byte %d: expected %s", s.pos, expected)
}

// next skips white space and returns the byte that follows; 0 at the end.
func (s *scanner) next() byte {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// accept steps over one byte of punctuation if it comes next.
func (s *scanner) accept(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

// object calls visit with each key; visit must consume the value.
func (s *scanner) object(visit func(key string) error) error {
	more, err := s.open('{', '}')
	for ; more && err == nil; more, err = s.another('}') {
		key, err := s.key()
		if err == nil {
			err = visit(key)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// array calls visit before each element; visit must consume it.
func (s *scanner) array(visit func() error) error {
	more, err := s.open('[', ']')
	for ; more && err == nil; more, err = s.another(']') {
		if err := visit(); err != nil {
			return err
		}
	}
	return err
}

// open steps into an object or array and reports whether it holds anything.
func (s *scanner) open(start, end byte) (bool, error) {
	if !s.accept(start) {
		return false, s.fail(strconv.QuoteRune(rune(start)))
	}
	if s.depth++; s.depth > maxDepth {
		return false, fmt.Errorf("invalid JSON at byte %d: nested more than %d deep", s.pos, maxDepth)
	}
	if s.accept(end) {
		s.depth--
		return false, nil
	}
	return true, nil
}

// another steps over what stands behind a member and reports whether there is one more.
func (s *scanner) another(end byte) (bool, error) {
	if s.accept(end) {
		s.depth--
		return false, nil
	}
	if !s.accept(',') {
		return false, s.fail(`","`)
	}
	return true, nil
}

func (s *scanner) key() (string, error) {
	key, err := s.string()
	if err != nil {
		return "", err
	}
	if !s.accept(':') {
		return "", s.fail(`":"`)
	}
	return key, nil
}

// string reads a string; the result shares memory with the text.
func (s *scanner) string() (string, error) {
	if s.next() != '"' {
		return "", s.fail("a string")
	}
	start := s.pos
	plain, ascii := true, true
	for i := start + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.pos = i + 1
			content := s.text[start+1 : i]
			if plain && (ascii || utf8.ValidString(content)) {
				return content, nil
			}
			var decoded string
			err := json.Unmarshal([]byte(s.text[start:s.pos]), &decoded)
			return decoded, err
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			plain = false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", s.fail("the end of a string")
}

// value decodes any value.
func (s *scanner) value() (any, error) {
	switch s.next() {
	case '{':
		if s.inFields && s.shared != nil {
			return s.fieldSet()
		}
		return s.mapValue()
	case '[':
		return s.listValue()
	case '"':
		return s.string()
	default:
		return s.literal()
	}
}

func (s *scanner) mapValue() (map[string]any, error) {
	m := map[string]any{}
	more, err := s.open('{', '}')
	for ; more && err == nil; more, err = s.another('}') {
		key, err := s.key()
		if err != nil {
			return nil, err
		}
		if key == "fieldsV1" && s.depth == managedFieldsDepth {
			m[key], err = s.managedFields()
		} else {
			m[key], err = s.value()
		}
		if err != nil {
			return nil, err
		}
	}
	return m, err
}

func (s *scanner) listValue() ([]any, error) {
	list := []any{}
	more, err := s.open('[', ']')
	for ; more && err == nil; more, err = s.another(']') {
		v, err := s.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, err
}

// literal reads a number, true, false or null.
func (s *scanner) literal() (any, error) {
	start := s.pos
	for s.pos < len(s.text) && !strings.ContainsRune(" \t\r\n,:]}", rune(s.text[s.pos])) {
		s.pos++
	}
	switch text := s.text[start:s.pos]; {
	case text == "true":
		return true, nil
	case text == "false":
		return false, nil
	case text == "null":
		return nil, nil
	case plainInteger(text):
		return strconv.ParseInt(text, 10, 64)
	default:
		var v any
		err := json.Unmarshal([]byte(text), &v)
		return v, err
	}
}

// plainInteger reports whether text is an integer that fits into an int64 for sure.
func plainInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > 18 || (digits[0] == '0' && text != "0") {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// skip steps over a value and returns its text. It looks at nothing but strings
// and brackets: who needs the value decodes it, and finds what is wrong with it.
func (s *scanner) skip() (string, error) {
	s.next()
	start, depth := s.pos, 0
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '"':
			if err := s.skipString(); err != nil {
				return "", err
			}
			if depth == 0 {
				return s.text[start:s.pos], nil
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return s.text[start:s.pos], nil // the end of what holds a bare literal
			}
			if depth == 0 {
				s.pos++
				return s.text[start:s.pos], nil
			}
		case ',':
			if depth == 0 {
				return s.text[start:s.pos], nil
			}
		}
		s.pos++
	}
	return "", s.fail("the end of a value")
}

func (s *scanner) skipString() error {
	for i := s.pos + 1; i < len(s.text); i++ {
		j := strings.IndexAny(s.text[i:], `"\`)
		if j < 0 {
			break
		}
		i += j
		if s.text[i] == '"' {
			s.pos = i + 1
			return nil
		}
		i++ // what a backslash escapes
	}
	return s.fail("the end of a string")
}
