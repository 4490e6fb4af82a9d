package pattern

import (
	"slices"
	"strings"
)

// Anchor is what the parentheses around a key ask for.
type Anchor byte

// The anchors. None marks a plain key.
const (
	None      Anchor = 0
	Condition Anchor = '(' // (key): go on only if the value matches
	Global    Anchor = '<' // <(key): like Condition, for the whole pattern
	Add       Anchor = '+' // +(key): write the value unless the key is there
	Equality  Anchor = '=' // =(key): if the key is there, its value must match
	Negation  Anchor = 'X' // X(key): the key must not be there
	Existence Anchor = '^' // ^(key): some element of the list must match
)

// ParseKey splits a key of a pattern into its anchor and the plain key. Blanks
// around the key do not count, as in Kyverno; a plain key is returned as it is.
func ParseKey(key string) (Anchor, string) {
	text := strings.TrimSpace(key)
	if len(text) < 3 || text[len(text)-1] != ')' {
		return None, key
	}
	if text[0] == '(' {
		return Condition, text[1 : len(text)-1]
	}
	if len(text) < 4 || text[1] != '(' {
		return None, key
	}
	switch a := Anchor(text[0]); a {
	case Global, Add, Equality, Negation, Existence:
		return a, text[2 : len(text)-1]
	default:
		return None, key
	}
}

// String is the anchor as it is written around a key.
func (a Anchor) String() string {
	switch a {
	case None:
		return ""
	case Condition:
		return "()"
	default:
		return string(rune(a)) + "()"
	}
}

// Has reports whether there is one of some anchors in a pattern, however deep.
func Has(pattern any, anchors ...Anchor) bool {
	switch p := pattern.(type) {
	case map[string]any:
		for key, value := range p {
			if anchor, _ := ParseKey(key); slices.Contains(anchors, anchor) || Has(value, anchors...) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, func(item any) bool { return Has(item, anchors...) })
	}
	return false
}
