package translate

import (
	"fmt"
	"strings"
)

// UnsupportedError reports a construct that the target language cannot express.
type UnsupportedError struct {
	// Construct is the construct, such as "the function x509_decode".
	Construct string
	// Reason is the reason, shared by all constructs with the same problem.
	Reason string
	// Instead is the closest alternative, a sentence without a period; empty for none.
	Instead string
}

// Error gives the construct, the reason and the alternative.
func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("%s cannot be translated: %s", e.Construct, e.Reason)
	if e.Instead != "" {
		text += "; " + e.Instead
	}
	return text
}

// Reasons shared by several constructs.
const (
	reasonUnknownType  = "its type is not known"
	reasonNoFunction   = "CEL has no such function"
	reasonOnlyPolicies = "MutatingAdmissionPolicies have no such function"
	reasonDynamic      = "it is known only when the policy is evaluated"
	reasonFails        = "it always fails"
	reasonFraction     = "the number may have a fraction"
)

// Failure is the panic value of a failed translation at any depth of an expression: an *UnsupportedError, or
// a parser error.
type Failure struct{ error }

// GiveDefinition tells users how to provide a kind and the types of its fields.
const GiveDefinition = "give its CustomResourceDefinition with -f or -p, or use a cluster that has it"

func unsupported(construct, reason, instead string) Failure {
	if reason == reasonUnknownType {
		instead = strings.TrimPrefix(instead+"; for a custom resource, "+GiveDefinition, "; ")
	}
	return Failure{&UnsupportedError{Construct: construct, Reason: reason, Instead: instead}}
}

// check fails with an error unless it is nil.
func check(err error) {
	if err != nil {
		panic(Failure{err})
	}
}

// must fails the translation on an error.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// Try returns the error of a failed translation.
func Try(translate func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case Failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	translate()
	return nil
}
