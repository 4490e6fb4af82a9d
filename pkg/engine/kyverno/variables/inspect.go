package variables

import (
	"regexp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// Inspection is what a text of a policy holds, for those who look for mistakes in it.
type Inspection struct {
	Variables []Variable
	// Unclosed is a variable that is not closed, or that stands in single braces: both are plain text.
	Unclosed string
}

// Variable is one variable of a text. Text has "x" for the variables in it.
type Variable struct {
	Text       string
	Expression *jmespath.Expression
}

// reserved begins a variable that every rule has.
const reserved = `(?:request|target|element)\.[\w.]+`

var (
	singleBraces = regexp.MustCompile(`\{\s*` + reserved + `[^{}"]*\}`)
	bareVariable = regexp.MustCompile(`^` + reserved + `$`)
)

// LooksLikeVariable reports whether a text is one that {{ }} is missing around, such as "request.operation".
func LooksLikeVariable(text string) bool { return bareVariable.MatchString(text) }

// Inspect looks at a text. What does not compile is left out.
func Inspect(text string) Inspection {
	var out Inspection
	frames, err := open(text)
	if err != nil {
		return out
	}
	if len(frames) > 1 {
		out.Unclosed = text[frames[1].start-len("{{"):]
	}
	out.add(flatten(frames), true)
	return out
}

func (i *Inspection) add(segments []segment, outside bool) {
	for _, s := range segments {
		if s.variable == nil {
			if found := singleBraces.FindString(s.text); found != "" && outside && i.Unclosed == "" {
				i.Unclosed = found
			}
			continue
		}
		i.add(s.variable.pieces, false)
		text := s.variable.source()
		if s.variable.pieces != nil {
			text = s.variable.withPlaceholders()
		}
		if x, err := jmespath.Compile(text); err == nil {
			i.Variables = append(i.Variables, Variable{Text: text, Expression: x})
		}
	}
}
