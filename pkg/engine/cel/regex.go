package cel

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The bounds of a regular expression. A counted repetition is as long as what it stands
// for: x{1000} has a thousand instructions.
const (
	maxPattern      = 10_000 // bytes
	maxInstructions = 10_000
)

// What compiling a regular expression takes.
const (
	stepsPerInstruction = 10
	bytesPerInstruction = 200
)

// instructionsOf returns about how many instructions a regular expression has when it is
// compiled; 0 where it is none, which the library reports.
func instructionsOf(pattern string) (int, error) {
	if len(pattern) > maxPattern {
		return 0, &engine.LimitError{What: "bytes in a regular expression", Max: maxPattern}
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, nil //nolint:nilerr // the library reports it
	}
	n := instructionsIn(parsed)
	if n > maxInstructions {
		return 0, &engine.LimitError{What: "instructions of a regular expression", Max: maxInstructions}
	}
	return n, nil
}

func instructionsIn(x *syntax.Regexp) int {
	n := max(1, len(x.Rune)/16) // of a class; of a literal they are counted below
	if x.Op == syntax.OpLiteral {
		n = len(x.Rune)
	}
	for _, sub := range x.Sub {
		n += instructionsIn(sub)
	}
	if x.Op == syntax.OpRepeat {
		n *= max(x.Min+1, x.Max) // the parser lets nested ones multiply up to a thousand
	}
	return n
}

// prepare compiles a constant regular expression, so that its errors are those of the
// policy, and it is compiled once.
func (c *call) prepare() error {
	if !c.price.regex || len(c.args) < 2 {
		return nil
	}
	constant, ok := c.args[1].(interpreter.InterpretableConst)
	if !ok {
		return nil
	}
	pattern, ok := stringOf(constant.Value())
	if !ok {
		return nil
	}
	var err error
	if c.instructions, err = instructionsOf(pattern); err != nil {
		return fmt.Errorf("has the regular expression %q, which %w", shorten(pattern), err)
	}
	compiled, err := regexp.Compile(pattern)
	if do := searchOf(c.Function(), compiled); do != nil {
		c.do = do
		return err
	}
	return nil
}

// payRegex pays for a text that is matched with a regular expression, in time that is
// linear in both.
func (c *call) payRegex(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	n := c.instructions
	if n == 0 { // it is compiled now
		pattern, _ := stringOf(args[1])
		var err error
		if n, err = instructionsOf(pattern); err != nil {
			return err
		}
		if err := b.Spend(stepsPerInstruction * (n + len(pattern))); err != nil {
			return err
		}
		if err := b.Build(bytesPerInstruction * (n + len(pattern))); err != nil {
			return err
		}
	}
	return b.Spend(n * (1 + len(text)))
}

// searchOf returns what a function of Kubernetes does with a compiled regular expression;
// nil for another function.
func searchOf(function string, x *regexp.Regexp) func([]ref.Val) ref.Val {
	search := map[string]func(text string, most int) ref.Val{
		"matches": func(text string, _ int) ref.Val { return types.Bool(x.MatchString(text)) },
		"find":    func(text string, _ int) ref.Val { return types.String(x.FindString(text)) },
		"findAll": func(text string, most int) ref.Val {
			return types.NewStringList(types.DefaultTypeAdapter, x.FindAllString(text, most))
		},
	}[function]
	if search == nil {
		return nil
	}
	return func(args []ref.Val) ref.Val {
		text, ok := stringOf(args[0])
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		most := types.Int(-1)
		if len(args) > 2 {
			if most, ok = args[2].(types.Int); !ok {
				return types.MaybeNoSuchOverloadErr(args[2])
			}
		}
		return search(text, int(most))
	}
}

// payMatches pays for the list of all matches.
func payMatches(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	return b.BuildList(1 + len(text))
}

// payExpanded pays for the longest text that replacing can make, where each character is
// replaced.
func payExpanded(b *engine.Budget, args []ref.Val) error {
	text, _ := stringOf(args[0])
	replacement, _ := stringOf(args[2])
	return b.Build((1 + len(text)) * (1 + len(replacement)))
}
