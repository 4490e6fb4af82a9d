package match

import "strings"

// glob is a name with `*` at its beginning, its end or both; anywhere else a `*`
// is itself (pkg/wildcard in Gatekeeper).
type glob string

func (g glob) parts() (text string, open, openEnd bool) {
	text, openEnd = strings.CutSuffix(string(g), "*")
	text, open = strings.CutPrefix(text, "*")
	return text, open, openEnd
}

func (g glob) matches(name string) bool {
	text, open, openEnd := g.parts()
	switch {
	case open && openEnd:
		return strings.Contains(name, text)
	case open:
		return strings.HasSuffix(name, text)
	case openEnd:
		return strings.HasPrefix(name, text)
	}
	return name == text
}

// matchesGenerated reports whether the glob matches metadata.generateName, a prefix that
// the server completes: the glob has to leave the end open.
func (g glob) matchesGenerated(prefix string) bool {
	_, _, openEnd := g.parts()
	return prefix != "" && openEnd && g.matches(prefix)
}

// AnyGlob reports whether one of the patterns, in Gatekeeper's syntax, matches.
func AnyGlob(patterns []string, name string) bool {
	for _, p := range patterns {
		if glob(p).matches(name) {
			return true
		}
	}
	return false
}
