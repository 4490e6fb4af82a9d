package variables

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// reference matches $(path), and \$(path), which is plain.
var reference = regexp.MustCompile(`\\?\$\([^ )]+\)`)

func (p *parser) references(text string, place []string) (string, error) {
	var failed error
	replaced := reference.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, `\`) {
			return match[1:]
		}
		value, reason := p.referenced(match[2:len(match)-1], p.pointer(place))
		if reason != "" && failed == nil {
			failed = fmt.Errorf(`reference %s not resolved at path %s: %s; write \%s for the plain text`, match, p.pointer(place), reason, match)
		}
		return value
	})
	return replaced, failed
}

// referenced returns the string at a path, or why there is none.
func (p *parser) referenced(target, place string) (value, reason string) {
	operator, target := pattern.CutOperator(target) // stays before the value
	if !path.IsAbs(target) {
		target = path.Join(place, target)
	}
	inside, ok := strings.CutPrefix(path.Clean(target), strings.TrimSuffix(p.pointer(nil), "/")+"/")
	if !ok {
		return "", "the path leads out of the document"
	}
	found, ok := followPath(p.doc, strings.Split(inside, "/"))
	if !ok {
		return "", "no such path"
	}
	if text, ok := found.(string); ok {
		return operator + text, ""
	}
	if operator != "" {
		switch n := found.(type) {
		case int64:
			return operator + strconv.FormatInt(n, 10), ""
		case float64:
			return operator + strconv.FormatFloat(n, 'f', 6, 64), ""
		}
	}
	return "", fmt.Sprintf("a text is needed, not %T", found)
}

// followPath follows a path of names without anchors.
func followPath(value any, names []string) (any, bool) {
	for _, name := range names {
		switch v := value.(type) {
		case map[string]any:
			key, ok := keyOf(v, name)
			if !ok {
				return nil, false
			}
			value = v[key]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

func keyOf(fields map[string]any, name string) (string, bool) {
	if _, ok := fields[name]; ok {
		return name, true
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if _, plain := pattern.ParseKey(key); plain == name {
			return key, true
		}
	}
	return "", false
}
