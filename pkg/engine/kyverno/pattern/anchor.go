package pattern

import (
	"slices"
	"strings"
)

// Anchor is the meaning of the parentheses around a key.
type Anchor byte

// The anchors. None marks a plain key.
const (
	None      Anchor = 0
	Condition Anchor = '(' // (key): continue only if the value matches
	Global    Anchor = '<' // <(key): like Condition, for the whole pattern
	Add       Anchor = '+' // +(key): write the value unless the key exists
	Equality  Anchor = '=' // =(key): if the key exists, its value must match
	Negation  Anchor = 'X' // X(key): the key must not exist
	Existence Anchor = '^' // ^(key): some element of the list must match
)

// ParseKey splits a key of a pattern into its anchor and the plain key. Blanks around the key are ignored, as
// in Kyverno; a plain key is returned unchanged.
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

// String returns the anchor as written around a key.
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

// Has reports whether a pattern has one of the anchors at any depth.
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
