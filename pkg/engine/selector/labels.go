package selector

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Labels is a compiled label selector.
type Labels struct {
	written *metav1.LabelSelector
	exact   labels.Selector // nil if written has wildcards, which depend on an object's labels
}

// NewLabels compiles a selector in which `*` and `?` have no meaning. A selector that no API server would
// accept is an error.
func NewLabels(s *metav1.LabelSelector) (*Labels, error) {
	exact, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	return &Labels{exact: exact, written: s}, nil
}

// NewWildcardLabels compiles a selector as Kyverno reads it: a matchLabels pair with `*` or `?` in its key or
// value is first replaced by the first label of the object that fits both (in the order of the keys, where
// Kyverno leaves it to chance), and if none fits, each wildcard becomes the character 0
// (pkg/engine/wildcards).
func NewWildcardLabels(s *metav1.LabelSelector) (*Labels, error) {
	for key, value := range s.MatchLabels {
		if HasWildcard(key + value) {
			l := &Labels{written: s}
			// The expansion without labels is the part that does not depend on the object: if it is invalid, the
			// selector always is.
			_, err := metav1.LabelSelectorAsSelector(l.expand(nil))
			return l, err
		}
	}
	return NewLabels(s)
}

// Matches reports whether an object with these labels is selected.
func (l *Labels) Matches(set map[string]string) bool {
	if l.exact != nil {
		return l.exact.Matches(labels.Set(set))
	}
	expanded, err := metav1.LabelSelectorAsSelector(l.expand(set))
	return err == nil && expanded.Matches(labels.Set(set))
}

// Exact returns the selector, or nil if it has wildcards, which a server does not understand.
func (l *Labels) Exact() *metav1.LabelSelector {
	if l.exact == nil {
		return nil
	}
	return l.written
}

// Keys returns the keys of the labels that the selector asks for, sorted.
func (l *Labels) Keys() []string {
	keys := slices.Collect(maps.Keys(l.written.MatchLabels))
	for i := range l.written.MatchExpressions {
		keys = append(keys, l.written.MatchExpressions[i].Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// String returns the selector as kubectl's --selector would write it, wildcards included.
func (l *Labels) String() string {
	if l.exact != nil {
		return metav1.FormatLabelSelector(l.written)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(l.written.MatchLabels)) {
		parts = append(parts, key+"="+l.written.MatchLabels[key])
	}
	if len(l.written.MatchExpressions) > 0 {
		parts = append(parts,
			metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: l.written.MatchExpressions}))
	}
	return strings.Join(parts, ",")
}

func (l *Labels) expand(set map[string]string) *metav1.LabelSelector {
	expanded := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(l.written.MatchLabels)) {
		key, value := expandPair(key, l.written.MatchLabels[key], set)
		expanded[key] = value
	}
	return &metav1.LabelSelector{MatchLabels: expanded, MatchExpressions: l.written.MatchExpressions}
}

func expandPair(key, value string, set map[string]string) (string, string) {
	for _, k := range slices.Sorted(maps.Keys(set)) {
		if MatchWildcard(key, k) && MatchWildcard(value, set[k]) {
			return k, set[k]
		}
	}
	plain := strings.NewReplacer("*", "0", "?", "0")
	return plain.Replace(key), plain.Replace(value)
}

// Pairs reports whether each pair of patterns matches the key and value of at least one pair of the set, as
// Kyverno matches annotations.
func Pairs(patterns, set map[string]string) bool {
	for key, value := range patterns {
		found := false
		for k, actual := range set {
			found = found || MatchWildcard(key, k) && MatchWildcard(value, actual)
		}
		if !found {
			return false
		}
	}
	return true
}

// AnyOf reports whether one of the patterns matches the string.
func AnyOf(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return MatchWildcard(pattern, text) })
}

// Written returns the selector as written; nil for none.
func (l *Labels) Written() *metav1.LabelSelector {
	if l == nil {
		return nil
	}
	return l.written
}

// Contradiction describes why no labels can meet a selector; empty if some can. It ignores values with
// wildcards, and selectors that no server would accept.
func Contradiction(s *metav1.LabelSelector) string {
	plain := metav1.LabelSelector{MatchLabels: maps.Clone(s.MatchLabels), MatchExpressions: s.MatchExpressions}
	maps.DeleteFunc(plain.MatchLabels, func(key, value string) bool { return HasWildcard(key + value) })
	all, _ := metav1.LabelSelectorAsSelector(&plain)
	if all == nil {
		return ""
	}
	wants := map[string]labels.Requirements{}
	requirements, _ := all.Requirements()
	for _, r := range requirements {
		wants[r.Key()] = append(wants[r.Key()], r)
	}
	for _, key := range slices.Sorted(maps.Keys(wants)) {
		// a value that none of them names
		one, absent, values := labels.NewSelector().Add(wants[key]...), false, []string{"\x00"}
		for _, r := range wants[key] {
			absent, values = absent || r.Operator() == selection.DoesNotExist, append(values, r.ValuesUnsorted()...)
		}
		switch {
		case one.Matches(labels.Set{}),
			slices.ContainsFunc(values, func(v string) bool { return one.Matches(labels.Set{key: v}) }):
		case absent:
			return key + " would have to be there and not be there"
		default:
			return key + " can have none of the values that are left"
		}
	}
	return ""
}
