package variables

import (
	"encoding/json"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// maxNesting bounds how deep variables may stand in variables.
const maxNesting = 32

// segment is plain text or a variable.
type segment struct {
	text     string
	variable *variable
}

// variable is what stands between {{ and }}. One with nested variables has
// pieces and is compiled when they are known; any other has expressions.
type variable struct {
	raw    string
	pieces []segment
	depth  int

	expr     *jmespath.Expression
	onTarget *jmespath.Expression // {{@}} where the scope has a target
	probe    *jmespath.Expression // pieces with "x" for what is nested
}

// source is the expression as the policy writes it.
func (v *variable) source() string { return trimmed(v.raw) }

// trimmed drops the blanks around an expression, and the minus of {{-, which
// keeps Kyverno from substituting in what was substituted: never done here.
func trimmed(raw string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(raw), "-"))
}

// known lists the expressions that compiling found.
func (v *variable) known() []*jmespath.Expression {
	var found []*jmespath.Expression
	for _, expr := range []*jmespath.Expression{v.onTarget, v.expr, v.probe} {
		if expr != nil {
			found = append(found, expr)
		}
	}
	return found
}

// frame is a variable that is not closed yet. Braces counts the plain braces
// open in it, those of a JMESPath hash.
type frame struct {
	segments []segment
	text     strings.Builder
	start    int
	braces   int
}

func (f *frame) flush() {
	if f.text.Len() > 0 {
		f.segments = append(f.segments, segment{text: f.text.String()})
		f.text.Reset()
	}
}

// scan splits a text. What is opened and never closed is plain text,
// as are closing braces without opening ones.
func scan(text string) ([]segment, error) {
	frames, err := open(text)
	if err != nil {
		return nil, err
	}
	return flatten(frames), nil
}

// open splits a text in one pass, into the text itself and the variables that are not closed at its end.
func open(text string) ([]*frame, error) {
	frames := []*frame{{}}
	lastClose := strings.LastIndex(text, "}}")
	for i := 0; i < len(text); {
		top := frames[len(frames)-1]
		inside := len(frames) > 1
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, `\{{`):
			if inside || lastClose < i {
				top.text.WriteByte('\\')
			}
			top.text.WriteString("{{")
			i += len(`\{{`)
		case strings.HasPrefix(rest, "{{"):
			frames = append(frames, &frame{start: i + 2})
			i += 2
		case inside && top.braces == 0 && strings.HasPrefix(rest, "}}"):
			below := frames[len(frames)-2]
			v := &variable{raw: text[top.start:i]}
			if err := v.take(top); err != nil {
				return nil, err
			}
			below.flush()
			below.segments = append(below.segments, segment{variable: v})
			frames = frames[:len(frames)-1]
			i += 2
		default:
			if inside && text[i] == '{' {
				top.braces++
			} else if inside && text[i] == '}' && top.braces > 0 {
				top.braces--
			}
			top.text.WriteByte(text[i])
			i++
		}
	}
	return frames, nil
}

// flatten turns the frames that were never closed into text.
func flatten(frames []*frame) []segment {
	bottom := frames[0]
	for _, f := range frames[1:] {
		bottom.text.WriteString("{{")
		for _, s := range f.segments {
			if s.variable == nil {
				bottom.text.WriteString(s.text)
				continue
			}
			bottom.flush()
			bottom.segments = append(bottom.segments, s)
		}
		bottom.text.WriteString(f.text.String())
	}
	bottom.flush()
	return bottom.segments
}

// take gives a variable what was collected in its frame.
func (v *variable) take(f *frame) error {
	f.flush()
	for _, s := range f.segments {
		if s.variable != nil {
			v.pieces = f.segments
			v.depth = max(v.depth, s.variable.depth+1)
		}
	}
	if v.depth >= maxNesting {
		return &limit.Error{What: "nested variables", Max: maxNesting}
	}
	return nil
}

// plainText is the text of segments without variables.
func plainText(segments []segment) (string, bool) {
	var b strings.Builder
	for _, s := range segments {
		if s.variable != nil {
			return "", false
		}
		b.WriteString(s.text)
	}
	return b.String(), true
}

// compile compiles a variable that stands at a path of a document.
func (v *variable) compile(path []string) (err error) {
	if v.pieces != nil {
		v.probe, _ = jmespath.Compile(v.withPlaceholders()) // only for analysis
		return nil
	}
	text := v.source()
	if text == "@" {
		place := identifiers(path)
		if v.onTarget, err = jmespath.Compile("target" + place); err != nil {
			return err
		}
		text = "request.object" + place
	}
	v.expr, err = jmespath.Compile(text)
	return err
}

func (v *variable) withPlaceholders() string {
	var b strings.Builder
	for _, s := range v.pieces {
		if s.variable != nil {
			b.WriteByte('x')
			continue
		}
		b.WriteString(s.text)
	}
	return trimmed(b.String())
}

// identifiers writes a path of a document as the end of an expression; anchors
// are taken off, because the object has the plain key.
func identifiers(path []string) string {
	var b strings.Builder
	for _, name := range path {
		if isIndex(name) {
			b.WriteString("[" + name + "]")
			continue
		}
		_, plain := pattern.ParseKey(name)
		quoted, _ := json.Marshal(plain) // a string always has JSON
		b.WriteString("." + string(quoted))
	}
	return b.String()
}

func isIndex(name string) bool {
	if name == "" || len(name) > 9 {
		return false
	}
	return strings.Trim(name, "0123456789") == ""
}
