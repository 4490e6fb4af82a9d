package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// RuleRef names a rule and its place. Its JSON is part of plans, journals and reports.
type RuleRef struct {
	Dialect string `json:"dialect"`          // "kyverno", "gatekeeper", ...
	Policy  string `json:"policy"`           // "team-labels", or "shop/team-labels" for a namespaced policy
	Rule    string `json:"rule,omitempty"`   // empty in languages whose policies have no named rules
	Via     string `json:"via,omitempty"`    // the binding and parameter through which the policy applied
	Origin  string `json:"origin,omitempty"` // as in Document
	// Severity is the result of SeverityOf for the policy.
	Severity string `json:"severity,omitempty"`
}

// SeverityOf returns the severity of a policy by its annotation policies.kyverno.io/severity: critical, high,
// medium, low or info; empty for anything else.
func SeverityOf(policy *unstructured.Unstructured) string {
	switch severity := strings.ToLower(policy.GetAnnotations()["policies.kyverno.io/severity"]); severity {
	case "critical", "high", "medium", "low", "info":
		return severity
	}
	return ""
}

// String is "policy/rule", or "policy" without a rule.
func (r RuleRef) String() string {
	if r.Rule == "" {
		return r.Policy
	}
	return r.Policy + "/" + r.Rule
}

// parameterMark precedes the parameter in Via.
const parameterMark = " with "

// WithParameter returns the reference with a parameter of the binding, such as "ConfigMap shop/limits".
func (r RuleRef) WithParameter(name string) RuleRef {
	r.Via += parameterMark + name
	return r
}

// WithoutParameter returns the reference without its parameter.
func (r RuleRef) WithoutParameter() RuleRef {
	r.Via, _, _ = strings.Cut(r.Via, parameterMark)
	return r
}

// Warning is information for the user about a step that went well.
type Warning string

// Step is what one rule did to one object.
type Step struct {
	Rule RuleRef
	// TriggeredBy is the object that made a mutate-existing rule change this one; nil for a rule that changes
	// its match.
	TriggeredBy *ObjectKey
	// TriggerChangedBy are the rules that change the trigger in the same run: Rule sees it as they leave it.
	TriggerChangedBy []RuleRef
	Outcome          Outcome
	// AsCreated marks the effect of the rule on a creation of the object, where an update differs.
	AsCreated bool
	// Again is the rule whose change made the step's rule run once more; empty in the first round.
	Again string
	// NotIdempotent says why the rule may change its own result again (it reads a clock, draws a random value,
	// ...); empty where no reason is known. A second evaluation reports Impacts.
	NotIdempotent string
	// After is the object after the rule, where a dialect reports Changed. The engine keeps Fields instead.
	After *unstructured.Unstructured
	// Fields are the changes of the rule, computed by the engine like Change.Fields.
	Fields   []FieldChange
	Warnings []Warning
	// Confidential reports that the rule may have read more of a Secret, or of content made from one, than its
	// metadata, kind and type. Then neither the messages of the step nor its values may be shown, except for
	// values that Writes knows to be literal.
	Confidential bool
	// Writes are the places to which the rule of a confidential step writes.
	Writes Writes
	// Err says why the step was skipped, unsupported, denied or failed, did not match, or changed nothing
	// although the object is not simply as the rule wants it. Its message is made on demand: it costs nothing if
	// it is not shown.
	Err error
}

// Trigger is the object of TriggeredBy; zero without one.
func (s *Step) Trigger() ObjectKey { return ptr.Deref(s.TriggeredBy, ObjectKey{}) }

// Ignored reports whether the rule ignored the object, which is an IgnoredError.
func (s *Step) Ignored() bool {
	_, ignored := errors.AsType[*IgnoredError](s.Err)
	return s.Outcome == Skipped && ignored
}

// stepJSON is a Step in plans, journals and reports.
type stepJSON struct {
	RuleRef
	Outcome       Outcome    `json:"outcome"`
	AsCreated     bool       `json:"asCreated,omitempty"`
	NotIdempotent string     `json:"notIdempotent,omitempty"`
	Trigger       *ObjectKey `json:"trigger,omitempty"`
	ChangedBy     []RuleRef  `json:"triggerChangedBy,omitempty"`
	Reason        string     `json:"reason,omitempty"`
	Fields        []string   `json:"fields,omitempty"` // for people
	Warnings      []Warning  `json:"warnings,omitempty"`
}

// MarshalJSON writes what the rule did, the message of Err as the reason, and the paths of the fields. After
// is in the Change of the step.
func (s Step) MarshalJSON() ([]byte, error) {
	out := stepJSON{
		RuleRef: s.Rule, Outcome: s.Outcome, AsCreated: s.AsCreated, NotIdempotent: s.NotIdempotent,
		Trigger: s.TriggeredBy, ChangedBy: s.TriggerChangedBy, Warnings: s.Warnings,
	}
	for i := range s.Fields {
		out.Fields = append(out.Fields, PathString(s.Fields[i].Path))
	}
	if s.Err != nil {
		out.Reason = strings.ToValidUTF8(s.Err.Error(), "\ufffd")
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the output of MarshalJSON, except for the fields: their paths are for people.
func (s *Step) UnmarshalJSON(text []byte) error {
	var in stepJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*s = Step{
		Rule: in.RuleRef, Outcome: in.Outcome, AsCreated: in.AsCreated, NotIdempotent: in.NotIdempotent,
		TriggeredBy: in.Trigger, TriggerChangedBy: in.ChangedBy, Warnings: in.Warnings,
	}
	if in.Reason != "" {
		s.Err = errors.New(in.Reason)
	}
	return nil
}

// HeldBack is the reason why a matching policy changes nothing: another one fails on the same object, which
// admission then refuses.
func HeldBack(by string) error {
	return fmt.Errorf("%s fails on this object, so no policy changes it", by)
}

// Sink takes steps in the order in which they happen. It needs no reasons for outcomes that it does not want,
// and no step of a rule that did not match. A Sink is used by one goroutine at a time.
type Sink interface {
	Wants(Outcome) bool
	Step(Step)
}

// HandOver gives all steps of a program to a Sink. Where a policy fails, so that admission refuses the
// object, steps that changed it are held back.
func HandOver(sink Sink, steps []Step, denied string) {
	for _, s := range steps {
		if denied != "" && s.Outcome == Changed {
			s.Outcome, s.After, s.Err = Skipped, nil, HeldBack(denied)
		}
		sink.Step(s)
	}
}

// RuleFilter selects rules by the user's --only and --skip: "POLICY" or "POLICY/RULE". The zero value keeps
// all.
type RuleFilter struct{ Only, Skip []string }

// Keeps returns a function that reports whether a rule, given its names, takes part in the run.
func (f RuleFilter) Keeps() func(names ...RuleRef) bool {
	only, skip := sets.New(f.Only...), sets.New(f.Skip...)
	return func(names ...RuleRef) bool {
		in := func(typed sets.Set[string]) bool {
			return len(typed) > 0 && slices.ContainsFunc(names, func(r RuleRef) bool {
				return typed.Has(r.Policy) || r.Rule != "" && typed.Has(r.String())
			})
		}
		return (len(only) == 0 || in(only)) && !in(skip)
	}
}

// mostReasons bounds the reported reasons.
const mostReasons = 3

// Reasons collects the reasons for the outcome of one rule on one object. A nil Reasons collects none, for
// runs that do not keep reasons.
type Reasons struct {
	place    string // in front of each reason
	gathered *gathered
}

type gathered struct {
	texts []string
	more  int // beyond those that are kept
}

// NewReasons returns an empty list.
func NewReasons() *Reasons { return &Reasons{gathered: &gathered{}} }

// At returns the same list for a part of the rule, which precedes its reasons.
func (l *Reasons) At(place string) *Reasons {
	if l == nil {
		return nil
	}
	return &Reasons{place: l.place + place + ": ", gathered: l.gathered}
}

// Add adds a reason. Reasons beyond the bound are only counted.
func (l *Reasons) Add(format string, args ...any) {
	switch {
	case l == nil:
	case len(l.gathered.texts) == mostReasons:
		l.gathered.more++
	default:
		l.gathered.texts = append(l.gathered.texts, l.place+fmt.Sprintf(format, args...))
	}
}

// Err joins the reasons why a rule that ran changed nothing, where the object lacks what the rule writes; nil
// for none.
func (l *Reasons) Err() error {
	if l == nil || len(l.gathered.texts) == 0 {
		return nil
	}
	text := strings.Join(l.gathered.texts, "; ")
	if l.gathered.more > 0 {
		text += fmt.Sprintf("; and %d more such", l.gathered.more)
	}
	return errors.New(text)
}

// Mismatch is one criterion of a rule that an object does not meet: the error of a NotMatched Step.
type Mismatch struct {
	// Criterion is the field of the rule, such as "kinds" or "namespaceSelector";
	// a whole sentence where Wanted is empty.
	Criterion string
	Wanted    string // what the rule asks for
	Found     string // what the object has instead, with its verb: "is Service", "has none"
}

// NewMismatch returns the mismatch of a criterion with one value of the object, empty where the object has
// none.
func NewMismatch(criterion, wanted, value string) Mismatch {
	found := "has none"
	if value != "" {
		found = "is " + value
	}
	return Mismatch{Criterion: criterion, Wanted: cmp.Or(wanted, "none"), Found: found}
}

// Error reads like "kinds: wants Pod, Deployment, is Service".
func (m Mismatch) Error() string {
	if m.Wanted == "" {
		return m.Criterion
	}
	return m.Criterion + ": wants " + m.Wanted + ", " + m.Found
}

// FoundLabels describes, as the Found of a Mismatch, the labels for which a selector asks: "has app=db", "has
// no app, only team=shop", "has none".
func FoundLabels(set map[string]string, l *selector.Labels) string {
	return describeFound(set, l.Keys(),
		func(key string) string { return key + "=" + Shorten(set[key], mostBytes) })
}

// FoundAnnotations is FoundLabels for annotations and their patterns. Values of other annotations are left
// out: one may hold the whole object.
func FoundAnnotations(set, patterns map[string]string) string {
	return describeFound(set, slices.Sorted(maps.Keys(patterns)), func(key string) string { return key })
}

func describeFound(set map[string]string, keys []string, other func(key string) string) string {
	own := slices.Sorted(maps.Keys(set))
	var have, lack []string
	for _, key := range keys {
		matching := slices.DeleteFunc(slices.Clone(own),
			func(k string) bool { return !selector.MatchWildcard(key, k) })
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
