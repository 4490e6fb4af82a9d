package engine

import "cmp"

// Mismatch is one criterion of a rule that an object does not meet. As an error it
// is why a Step is NotMatched.
type Mismatch struct {
	// Criterion is the field of the rule, such as "kinds" or "namespaceSelector";
	// a whole sentence where Wanted is empty.
	Criterion string
	Wanted    string // what the rule asks for
	Found     string // what the object has instead, with its verb: "is Service", "has none"
}

// NewMismatch returns the mismatch of a criterion that compares one value of the
// object, which is empty where the object has none.
func NewMismatch(criterion, wanted, value string) Mismatch {
	return Mismatch{Criterion: criterion, Wanted: cmp.Or(wanted, "none"), Found: is(value)}
}

func is(value string) string {
	if value == "" {
		return "has none"
	}
	return "is " + value
}

// Error reads like "kinds: wants Pod, Deployment, is Service".
func (m Mismatch) Error() string {
	if m.Wanted == "" {
		return m.Criterion
	}
	return m.Criterion + ": wants " + m.Wanted + ", " + m.Found
}
