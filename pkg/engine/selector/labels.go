package selector

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Labels is a compiled label selector.
type Labels struct {
	exact    labels.Selector       // used when wild is nil
	wild     *metav1.LabelSelector // has wildcards, which an object's own labels expand
	wildKeys []string              // the keys of wild.MatchLabels, sorted
	source   *metav1.LabelSelector
}

// NewLabels compiles a selector in which `*` and `?` have no meaning. It returns an
// error for what no API server would accept.
func NewLabels(s *metav1.LabelSelector) (*Labels, error) {
	exact, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	return &Labels{exact: exact, source: s}, nil
}

// NewWildcardLabels compiles a selector as Kyverno reads it: a matchLabels pair
// with `*` or `?` in its key or value is first replaced by the first label of
// the object that fits both (in the order of the keys, where Kyverno leaves it
// to chance), and where none fits, each wildcard becomes the character 0
// (pkg/engine/wildcards).
func NewWildcardLabels(s *metav1.LabelSelector) (*Labels, error) {
	var keys []string
	wild := false
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		keys = append(keys, key)
		wild = wild || HasWildcard(key) || HasWildcard(s.MatchLabels[key])
	}
	if !wild {
		return NewLabels(s)
	}
	l := &Labels{wild: s, wildKeys: keys, source: s}
	// The expansion without labels has what does not depend on the object: if that is
	// invalid, the selector always is.
	if _, err := metav1.LabelSelectorAsSelector(l.expand(labelSet[string]{})); err != nil {
		return nil, err
	}
	return l, nil
}

// Matches reports whether an object with these labels is selected.
func (l *Labels) Matches(set map[string]string) bool { return l.matches(labelSet[string](set)) }

func (l *Labels) matches(set expandable) bool {
	if l.wild == nil {
		return l.exact.Matches(set)
	}
	expanded, err := metav1.LabelSelectorAsSelector(l.expand(set))
	return err == nil && expanded.Matches(set)
}

// MatchesObject reports whether an object is selected by its own labels. It does not copy them.
func (l *Labels) MatchesObject(u *unstructured.Unstructured) bool {
	own, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "labels")
	set, isMap := own.(map[string]any)
	if !isMap {
		return l.Matches(u.GetLabels())
	}
	for _, value := range set {
		if _, isString := value.(string); !isString { // labels with other values are read in a way of their own
			return l.Matches(u.GetLabels())
		}
	}
	return l.matches(labelSet[any](set))
}

// expandable are labels that wildcards may expand to.
type expandable interface {
	labels.Labels
	keys() []string // in their order
}

// labelSet are labels, which are all texts.
type labelSet[V any] map[string]V

// Has reports whether there is a label.
func (s labelSet[V]) Has(key string) bool {
	_, has := s[key]
	return has
}

// Get returns the value of a label.
func (s labelSet[V]) Get(key string) string {
	value, _ := s.Lookup(key)
	return value
}

// Lookup returns the value of a label, and whether there is one.
func (s labelSet[V]) Lookup(key string) (string, bool) {
	value, has := any(s[key]).(string)
	return value, has && s.Has(key)
}

func (s labelSet[V]) keys() []string { return slices.Sorted(maps.Keys(s)) }

// Exact returns the selector, or nil when it holds wildcards, which a server does
// not understand.
func (l *Labels) Exact() *metav1.LabelSelector {
	if l.wild != nil {
		return nil
	}
	return l.source
}

// Keys returns the keys of the labels that the selector asks for, sorted.
func (l *Labels) Keys() []string {
	keys := slices.Collect(maps.Keys(l.source.MatchLabels))
	for i := range l.source.MatchExpressions {
		keys = append(keys, l.source.MatchExpressions[i].Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// String returns the selector as kubectl's --selector would write it, wildcards included.
func (l *Labels) String() string {
	if l.wild == nil {
		return metav1.FormatLabelSelector(l.source)
	}
	parts := make([]string, 0, len(l.wildKeys)+1)
	for _, key := range l.wildKeys {
		parts = append(parts, key+"="+l.wild.MatchLabels[key])
	}
	if len(l.wild.MatchExpressions) > 0 {
		parts = append(parts, metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: l.wild.MatchExpressions}))
	}
	return strings.Join(parts, ",")
}

func (l *Labels) expand(set expandable) *metav1.LabelSelector {
	expanded := make(map[string]string, len(l.wildKeys))
	for _, key := range l.wildKeys {
		value := l.wild.MatchLabels[key]
		if HasWildcard(key) || HasWildcard(value) {
			key, value = expandPair(key, value, set)
		}
		expanded[key] = value
	}
	return &metav1.LabelSelector{MatchLabels: expanded, MatchExpressions: l.wild.MatchExpressions}
}

func expandPair(key, value string, set expandable) (string, string) {
	fit := []string{key}
	if HasWildcard(key) {
		fit = set.keys()
	}
	for _, k := range fit {
		if actual, has := set.Lookup(k); has && MatchWildcard(key, k) && MatchWildcard(value, actual) {
			return k, actual
		}
	}
	plain := strings.NewReplacer("*", "0", "?", "0")
	return plain.Replace(key), plain.Replace(value)
}

// Pairs reports whether each pair of patterns matches the key and value of at least one
// pair of the set, as Kyverno matches annotations. The values of the set are texts.
func Pairs[V any](patterns map[string]string, set map[string]V) bool {
	for key, value := range patterns {
		if !hasPair(key, value, set) {
			return false
		}
	}
	return true
}

func hasPair[V any](key, value string, set map[string]V) bool {
	matches := func(v V) bool {
		text, isText := any(v).(string)
		return isText && MatchWildcard(value, text)
	}
	if !HasWildcard(key) {
		actual, ok := set[key]
		return ok && matches(actual)
	}
	for k, v := range set {
		if MatchWildcard(key, k) && matches(v) {
			return true
		}
	}
	return false
}

// AnyOf reports whether one of the patterns matches the text.
func AnyOf(patterns []string, text string) bool {
	for _, pattern := range patterns {
		if MatchWildcard(pattern, text) {
			return true
		}
	}
	return false
}

// Written returns the selector as it is written; nil for none.
func (l *Labels) Written() *metav1.LabelSelector {
	if l == nil {
		return nil
	}
	return l.source
}

// Contradiction describes why no labels can meet a selector; empty if some can. Values with wildcards are not looked
// at.
func Contradiction(s *metav1.LabelSelector) string {
	wants := map[string][]metav1.LabelSelectorRequirement{}
	for key, value := range s.MatchLabels {
		if !HasWildcard(key) && !HasWildcard(value) {
			wants[key] = append(wants[key], metav1.LabelSelectorRequirement{Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
		}
	}
	for _, r := range s.MatchExpressions {
		wants[r.Key] = append(wants[r.Key], r)
	}
	for _, key := range slices.Sorted(maps.Keys(wants)) {
		if why := contradiction(wants[key]); why != "" {
			return key + " " + why
		}
	}
	return ""
}

// contradiction looks at all requirements of one key.
func contradiction(all []metav1.LabelSelectorRequirement) string {
	present, absent, limited := false, false, false
	var allowed []string
	for _, r := range all {
		present = present || r.Operator == metav1.LabelSelectorOpExists || r.Operator == metav1.LabelSelectorOpIn
		absent = absent || r.Operator == metav1.LabelSelectorOpDoesNotExist
		if r.Operator != metav1.LabelSelectorOpIn {
			continue
		}
		if !limited {
			allowed, limited = slices.Clone(r.Values), true
			continue
		}
		allowed = slices.DeleteFunc(allowed, func(v string) bool { return !slices.Contains(r.Values, v) })
	}
	for _, r := range all {
		if r.Operator == metav1.LabelSelectorOpNotIn {
			allowed = slices.DeleteFunc(allowed, func(v string) bool { return slices.Contains(r.Values, v) })
		}
	}
	switch {
	case present && absent:
		return "would have to be there and not be there"
	case limited && len(allowed) == 0:
		return "can have none of the values that are left"
	}
	return ""
}
