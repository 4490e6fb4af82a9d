package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

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

// FoundLabels returns what a set of labels has of those that a selector asks for, as the
// Found of a Mismatch: "has app=db", "has no app, only team=shop", "has none".
func FoundLabels(set map[string]string, l *selector.Labels) string {
	return found(set, l.Keys(), func(key string) string { return key + "=" + Shorten(set[key], mostBytes) })
}

// FoundAnnotations is FoundLabels for annotations and the patterns that they are
// compared with. Values of other annotations are left out: one may hold the whole object.
func FoundAnnotations(set, patterns map[string]string) string {
	return found(set, slices.Sorted(maps.Keys(patterns)), func(key string) string { return key })
}

func found(set map[string]string, keys []string, other func(key string) string) string {
	own := slices.Sorted(maps.Keys(set))
	var have, lack []string
	for _, key := range keys {
		matching := slices.DeleteFunc(slices.Clone(own), func(k string) bool { return !selector.MatchWildcard(key, k) })
		for _, k := range matching {
			have = append(have, k+"="+Shorten(set[k], mostBytes))
		}
		if len(matching) == 0 {
			lack = append(lack, "no "+key)
		}
	}
	switch {
	case len(own) == 0:
		return "has none"
	case len(have) > 0:
		return "has " + Few(append(have, lack...))
	}
	for i, key := range own {
		own[i] = other(key)
	}
	return "has " + Few(lack) + ", only " + Few(own)
}
