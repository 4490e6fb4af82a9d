package convert

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
)

// Refusal says why a rule, or a whole policy, is not converted.
type Refusal struct {
	Rule   string // empty for the whole policy
	Field  string // in the rule; else in the policy
	Line   int    // of the field, as in engine.CompileError
	Reason string
	// Instead is the nearest way; empty where there is none.
	Instead string
}

// Error gives the field, the reason, and the nearest way.
func (r *Refusal) Error() string {
	text := r.Reason
	if r.Field != "" {
		text = r.Field + ": " + text
	}
	if r.Instead != "" {
		text += "; " + r.Instead
	}
	return text
}

// refuse is why what stands at a place of the object cannot be written in the new language.
func refuse(at place, format string, args ...any) error {
	return &Refusal{Field: strings.ReplaceAll(strings.Join(at.path, "."), ".[]", "[]"), Reason: fmt.Sprintf(format, args...)}
}

// refuseField is why a field of a rule cannot be said in the new language.
func refuseField(field, instead, format string, args ...any) error {
	return &Refusal{Field: field, Reason: fmt.Sprintf(format, args...), Instead: instead}
}

// wholePolicy stands for the index of a rule.
const wholePolicy = -1

// unknownFields returns the first field that there is not of each rule that mutates, by its index, and of the rest of the policy.
func unknownFields(d engine.Document, written []kyverno.WrittenRule) map[int]*Refusal {
	out := map[int]*Refusal{}
	_, _ = new(kyverno.Dialect).Compile(engine.Compilation{Documents: []engine.Document{d}, Warn: func(e engine.CompileError) {
		var unknown *engine.UnknownFieldError
		if !errors.As(e.Err, &unknown) {
			return
		}
		index, field := wholePolicy, e.Field
		for _, w := range written {
			if rest, ok := strings.CutPrefix(e.Field, fmt.Sprintf("spec.rules[%d].", w.Index)); ok {
				index, field = w.Index, rest
			}
		}
		if out[index] == nil {
			out[index] = &Refusal{Field: field, Line: e.Line, Reason: unknown.Error(), Instead: "correct it first"}
		}
	}})
	return out
}
