package convert

import (
	"fmt"
	"strings"
)

// Refusal says why a rule, or a whole policy, is not converted.
type Refusal struct {
	Rule   string // empty for the whole policy
	Field  string // in the rule
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
