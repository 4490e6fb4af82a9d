package translate

import (
	"fmt"
	"strings"
)

// UnsupportedError is something that the target language cannot say.
type UnsupportedError struct {
	// Construct is what cannot be said, such as "the function x509_decode".
	Construct string
	// Reason says why not; alike for all that is refused for one reason.
	Reason string
	// Instead is the nearest way, a sentence without a period; empty for none.
	Instead string
}

// Error gives all three.
func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("%s cannot be translated: %s", e.Construct, e.Reason)
	if e.Instead != "" {
		text += "; " + e.Instead
	}
	return text
}

// The reasons that several constructs share.
const (
	reasonUnknownType  = "its type is not known"
	reasonNoFunction   = "CEL has no such function"
	reasonOnlyPolicies = "MutatingAdmissionPolicies have no such function"
	reasonDynamic      = "it is known only when the policy is evaluated"
	reasonFails        = "it always fails"
	reasonFraction     = "the number may have a fraction"
)

// Failure is what a translation panics with, as deep as it may be in an expression: an *UnsupportedError, or
// the error of a parser.
type Failure struct{ error }

// GiveDefinition is how a kind becomes known, and the types of its fields.
const GiveDefinition = "give its CustomResourceDefinition with -f or -p, or use a cluster that has it"

func unsupported(construct, reason, instead string) Failure {
	if reason == reasonUnknownType {
		instead = strings.TrimPrefix(instead+"; for a custom resource, "+GiveDefinition, "; ")
	}
	return Failure{&UnsupportedError{Construct: construct, Reason: reason, Instead: instead}}
}

// check fails with an error, if there is one.
func check(err error) {
	if err != nil {
		panic(Failure{err})
	}
}

// must is a value without which the translation fails.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// Try returns the error with which a translation fails.
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
