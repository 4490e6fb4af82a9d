package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Refusal is the reason why a rule, or a whole policy, is not converted.
type Refusal struct {
	Rule   string // empty for the whole policy
	Field  string // in the rule, or in the policy
	Line   int    // of the field, as in engine.CompileError
	Reason string
	// Instead is the closest alternative, or empty.
	Instead string
}

// Error gives the field, the reason and the alternative.
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

// refusalOf recovers the refusal that a function panics with.
func refusalOf(do func()) (out *Refusal) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Refusal:
			out = p
		case translate.Failure:
			out = &Refusal{Reason: p.Error()}
		default:
			panic(p)
		}
	}()
	do()
	return nil
}

// must refuses the rule on an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(&Refusal{Reason: err.Error()})
	}
	return value
}

// inField prefixes the field of a refusal.
func inField(field string, do func()) {
	if r := refusalOf(do); r != nil {
		refusal := *r
		if refusal.Field = field; r.Field != "" {
			refusal.Field += "." + r.Field
		}
		panic(&refusal)
	}
}

// read converts a field, and adds its name to a refusal.
func read[T any](field string, of func() T) (out T) {
	inField(field, func() { out = of() })
	return out
}

// atPlace converts at a place of the object, which it adds to a refusal.
func atPlace[T any](at place, of func() T) (out T) {
	if r := refusalOf(func() { out = of() }); r != nil {
		panic(refuse(at, "%v", r))
	}
	return out
}

// refuse refuses to write at a place of the object.
func refuse(at place, format string, args ...any) *Refusal {
	return &Refusal{
		Field:  strings.ReplaceAll(strings.Join(at.path, "."), ".[]", "[]"),
		Reason: fmt.Sprintf(format, args...),
	}
}

// refuseField refuses a field of a rule.
func refuseField(field, instead, format string, args ...any) *Refusal {
	return &Refusal{Field: field, Reason: fmt.Sprintf(format, args...), Instead: instead}
}

// wholePolicy is the index of no rule.
const wholePolicy = -1

// closed refuses fields that are neither read by the conversion nor without effect on a mutate rule: they
// would be lost. The place is the path of the mapping.
func closed(f *policydecode.Fields, place string, read ...string) {
	for _, key := range sortedKeys(f.Values) {
		if f.Values[key] != nil && !slices.Contains(read, key) {
			panic(refuseField(strings.TrimPrefix(place+"."+key, "."), "leave it out, or write the rule by hand",
				"has no equal in the new policy"))
		}
	}
}

// one refuses more than one of several alternative fields.
func one(f *policydecode.Fields, place string, of ...string) {
	given := slices.DeleteFunc(of, func(key string) bool { return f.Values[key] == nil })
	if len(given) > 1 {
		panic(refuseField(strings.TrimPrefix(place+"."+given[1], "."), "write a rule for each",
			"stands beside %s", given[0]))
	}
}

// spec refuses policy settings that the new policies cannot express. Unread settings have no effect here:
// some are for other rule types (validationFailureAction, generateExisting, ...), background scans only
// report on mutate rules, and a note covers mutateExistingOnPolicyUpdate.
func (c *converter) spec() {
	spec := policydecode.Node{Report: &policydecode.Report{}, Value: c.document.Object().Object["spec"]}.Fields()
	closed(spec, "spec", "rules", "applyRules", "failurePolicy", "admission", "webhookTimeoutSeconds",
		"webhookConfiguration",
		"background", "emitWarning", "generateExisting", "generateExistingOnPolicyUpdate",
		"mutateExistingOnPolicyUpdate", "schemaValidation",
		"useServerSideApply", "validationFailureAction", "validationFailureActionOverrides")
	if admission, given := spec.Values["admission"]; given && admission == false {
		panic(refuseField("spec.admission", "leave it out; for a rule with targets, write a MutatingPolicy with evaluation.admission.enabled: false", "is false, so that the rule is not applied to requests"))
	}
	webhook := spec.At("webhookConfiguration").Fields()
	if webhook.Has("matchConditions") {
		panic(refuseField("spec.webhookConfiguration.matchConditions", "write the new policy without them, and copy them to its matchConditions", "are not evaluated here, so that nothing shows what they let through"))
	}
	closed(webhook, "spec.webhookConfiguration", "failurePolicy", "timeoutSeconds")
}

// unknownFields returns the first unknown field of each mutate rule by its index, and of the rest of the
// policy.
func unknownFields(d engine.Document, written []kyverno.WrittenRule) map[int]*Refusal {
	out := map[int]*Refusal{}
	_, _ = new(kyverno.Dialect).Compile(engine.Compilation{
		Documents: []engine.Document{d},
		Warn: func(e engine.CompileError) {
			if engine.ClassOf(e.Err) != engine.UnknownField {
				return
			}
			index, field := wholePolicy, e.Field
			for _, w := range written {
				if rest, ok := strings.CutPrefix(e.Field, fmt.Sprintf("spec.rules[%d].", w.Index)); ok {
					index, field = w.Index, rest
				}
			}
			if out[index] == nil {
				out[index] = &Refusal{Field: field, Line: e.Line, Reason: e.Err.Error(), Instead: "correct it first"}
			}
		},
	})
	return out
}
