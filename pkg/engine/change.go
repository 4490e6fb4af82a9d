package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Change is everything the run did to one object. Before and After are the same
// object where nothing changed, and nil where the object does not exist (a
// mutate-existing rule named a target that is not there).
type Change struct {
	Subject       ObjectKey
	Before, After *unstructured.Unstructured
	// Target is what was evaluated, so that it can be evaluated again.
	Target Target
	// Scoped reports whether the object is one that the user chose, so that its
	// own rules ran, and not only one that a mutate-existing rule reached.
	Scoped bool
	// Fields is what differs between Before and After as the server reads them, in
	// path order. It is computed from the steps, never reported by a dialect.
	Fields []FieldChange
	// Steps are in the order in which they happened. A rule that did not match is a
	// Step only if the run keeps reasons.
	Steps []Step
	// Asked are the rules that were evaluated on the object, which changes may share. One without a step did
	// not match.
	Asked []RuleRef
	// Impacts is what the change means beyond its fields, as far as the run had it
	// reviewed (evaluation.Options.Review).
	Impacts []Impact
	// Created is what a creation of the object would do differently, where Before is what is created: its
	// After has these differences alone, and its Steps are those that make them, all AsCreated. It is nil
	// where nothing is different, or the operation was chosen. It is shown, and never written.
	Created *Change
	// AsCreated reports whether the change is the Created of another one.
	AsCreated bool
	// Shown is the change as it may be shown, without what was made of Secrets; nil where
	// that is the change itself.
	Shown *Change
}

// ToShow returns the change as it may be shown.
func (c *Change) ToShow() *Change {
	if c.Shown != nil {
		return c.Shown
	}
	return c
}

// Changed reports whether the object would differ; false for nil.
func (c *Change) Changed() bool { return c != nil && len(c.Fields) > 0 }

// Writes reports whether a rule wrote to the object, even if a later one undid it.
func (c *Change) Writes() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Outcome == Changed })
}

// NotMatched counts the rules that did not match.
func (c *Change) NotMatched() int {
	asked := sets.New(c.Asked...)
	for i := range c.Steps {
		if c.Steps[i].Outcome != NotMatched {
			asked.Delete(c.Steps[i].Rule.WithoutParameter())
		}
	}
	return asked.Len()
}

// Denied reports whether admission would refuse the object as it would be.
func (c *Change) Denied() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Outcome == Denied })
}

// Managed reports whether something else keeps the object as it is, so that it is left alone unless the user
// asks for it.
func (c *Change) Managed() bool {
	return slices.ContainsFunc(c.Impacts, func(i Impact) bool { return i.Code == ImpactManaged })
}

// Ignored reports whether a rule that matches the object leaves it alone, because the object or the user says
// so.
func (c *Change) Ignored() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Ignored() })
}

// Refused reports whether the server would refuse the change, as far as that is known.
func (c *Change) Refused() bool {
	return slices.ContainsFunc(c.Impacts, func(i Impact) bool { return i.Code.Refuses() })
}

// Incomplete reports whether a step failed, was denied or is unsupported, so that
// the whole effect of the policies on this object is not known; false for nil.
func (c *Change) Incomplete() bool {
	return c != nil && slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Outcome.Incomplete() })
}

// ChangeKind is how a field differs.
type ChangeKind string

// The kinds of change. A moved element keeps its content and changes its place in
// an ordered list.
const (
	Added    ChangeKind = "added"
	Replaced ChangeKind = "replaced"
	Removed  ChangeKind = "removed"
	Moved    ChangeKind = "moved"
)

// FieldChange is one field in which two states of an object differ.
type FieldChange struct {
	Path fieldpath.Path `json:"-"`
	Kind ChangeKind     `json:"kind"`
	// From and To are the values before and after: From is nil when the field was
	// added, To when it was removed. Those of a moved element are its old and new
	// index, as int64.
	From, To any `json:"-"`
	// Withheld reports that a value belongs to a Secret and is masked in From and To.
	Withheld bool `json:"withheld,omitempty"`
	// Secret reports that a value belongs to a Secret and is there all the same.
	Secret bool `json:"secret,omitempty"`
	// SecretFrom is the place, counted from 1, of the first element of Path that was made of a
	// Secret; 0 if none was.
	SecretFrom int `json:"secretFrom,omitempty"`
	// Rule is the rule that wrote the field last; zero where nothing was evaluated.
	Rule RuleRef `json:"rule,omitzero"`
}

// AppliedPatches is the annotation in which the targets of Kyverno's rules carry what was changed, by which
// rule.
const AppliedPatches = "policies.kyverno.io/last-applied-patches"

//nolint:gochecknoglobals // never modified
var recordPath = fieldpath.MakePathOrDie("metadata", "annotations", AppliedPatches)

// Records reports whether the field is AppliedPatches alone, which repeats what the other fields say.
func (f *FieldChange) Records() bool {
	n := len(f.Path)
	if n < 2 || n > len(recordPath) || !f.Path.Equals(recordPath[:n]) {
		return false
	}
	added, _ := f.To.(map[string]any)
	return n == len(recordPath) || f.Kind == Added && len(added) == 1 && added[AppliedPatches] != nil
}

// addsRecord reports whether the field is the first annotations of an object, with AppliedPatches among
// others.
func (f *FieldChange) addsRecord() bool {
	added, _ := f.To.(map[string]any)
	return f.Kind == Added && f.Path.Equals(recordPath[:2]) && len(added) > 1 && added[AppliedPatches] != nil
}

// HeldBack returns the steps of the rules that were skipped and did nothing else to the object: one for each
// rule, however many triggers and rounds it had.
func (c *Change) HeldBack() []*Step {
	var out []*Step
	seen := map[RuleRef]bool{}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome != Skipped && s.Outcome != NotMatched {
			seen[s.Rule] = true
		}
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome == Skipped && !seen[s.Rule] {
			seen[s.Rule] = true
			out = append(out, s)
		}
	}
	return out
}

// SplitRecords returns the fields that a reader counts, and those that are Records or have one among them.
func SplitRecords(fields []FieldChange) (counted, records []FieldChange) {
	if !slices.ContainsFunc(fields, func(f FieldChange) bool { return f.Records() || f.addsRecord() }) {
		return fields, nil
	}
	for _, f := range fields {
		if f.Records() || f.addsRecord() {
			records = append(records, f)
		}
		if !f.Records() {
			counted = append(counted, f)
		}
	}
	return counted, records
}

// ShownPath returns a path that is, or leads to, the field, or to a part of it, as it may be shown: up to
// what was made of a Secret, which the names in a value may be as well. Other paths are returned as they are.
func (f FieldChange) ShownPath(p fieldpath.Path) fieldpath.Path {
	from := f.SecretFrom
	if from == 0 && (f.Secret || f.Withheld) {
		from = len(f.Path) + 1
	}
	shared := min(from, len(f.Path))
	if from == 0 || len(p) < from || !p[:shared].Equals(f.Path[:shared]) {
		return p
	}
	return append(p[:from-1:from-1], fieldpath.FieldNameElement(HiddenValue))
}

// String returns the kind and the path in structured-merge-diff's notation.
func (f FieldChange) String() string { return fmt.Sprintf("%s %s", f.Kind, f.Path) }

// fieldChangeJSON is a FieldChange in files. Place is for people; Elements, in
// structured-merge-diff's notation, is what is read back.
type fieldChangeJSON struct {
	Place    string   `json:"path"`
	Elements []string `json:"elements"`
	fieldChange
}

// fieldChange is a FieldChange without its methods.
type fieldChange FieldChange

// MarshalJSON writes the path in both notations, and all else but the values: files
// hold these once, in the states of the object that the field belongs to.
func (f FieldChange) MarshalJSON() ([]byte, error) {
	elements, err := PathElements(f.Path)
	if err != nil {
		return nil, err
	}
	return json.Marshal(fieldChangeJSON{PathString(f.Path), elements, fieldChange(f)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *FieldChange) UnmarshalJSON(text []byte) error {
	var in fieldChangeJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	path, err := ParsePathElements(in.Elements)
	if err != nil {
		return fmt.Errorf("field %q: %w", in.Place, err)
	}
	if !slices.Contains([]ChangeKind{Added, Replaced, Removed, Moved}, in.Kind) {
		return fmt.Errorf("field %q: unknown kind %q", in.Place, in.Kind)
	}
	if in.SecretFrom < 0 || in.SecretFrom > len(path) {
		return fmt.Errorf("field %q: secretFrom is %d, and the path has %d elements", in.Place, in.SecretFrom, len(path))
	}
	in.Path = path
	*f = FieldChange(in.fieldChange)
	return nil
}

// PathElements returns the elements of a path in structured-merge-diff's notation,
// which ParsePathElements reads.
func PathElements(p fieldpath.Path) ([]string, error) {
	out := make([]string, len(p))
	for i, e := range p {
		var err error
		if out[i], err = fieldpath.SerializePathElement(e); err != nil {
			return nil, fmt.Errorf("path %s: %w", PathString(p), err)
		}
	}
	return out, nil
}

// ParsePathElements returns the path that PathElements was given. It is an error if
// there are no elements.
func ParsePathElements(elements []string) (fieldpath.Path, error) {
	if len(elements) == 0 {
		return nil, errors.New("no path")
	}
	out := make(fieldpath.Path, len(elements))
	for i, text := range elements {
		var err error
		if out[i], err = fieldpath.DeserializePathElement(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// PathString is a path as people write it: `spec.containers[web].ports[containerPort=80,protocol=TCP]`,
// `metadata.labels["app.kubernetes.io/name"]`, `metadata.finalizers[=keep]`, `spec.args[0]`. Two different
// paths never have the same text, and what cannot be printed in it is escaped: control characters, and those
// of no width. The path of a whole object is the empty string.
func PathString(p fieldpath.Path) string { return pathText(p, elementText) }

// PathPattern returns a path as PathString does, with [*] for the elements of lists: it is equal for
// the same field of several elements.
func PathPattern(p fieldpath.Path) string {
	return pathText(p, func(fieldpath.PathElement) string { return "*" })
}

// pathText is a path with its list elements as a function names them.
func pathText(p fieldpath.Path, element func(fieldpath.PathElement) string) string {
	b := make([]byte, 0, 64)
	for _, e := range p {
		switch {
		case e.FieldName != nil && isPlainName(*e.FieldName):
			if len(b) > 0 {
				b = append(b, '.')
			}
			b = append(b, *e.FieldName...)
		case e.FieldName != nil:
			b = append(strconv.AppendQuote(append(b, '['), *e.FieldName), ']')
		default:
			b = append(append(append(b, '['), element(e)...), ']')
		}
	}
	return string(b)
}

// isPlainName reports whether a field's name needs no quotes. (All changes are grouped by paths: a regular
// expression takes some 4 % of a run.)
func isPlainName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '-' && (c < '0' || '9' < c)) {
			return false
		}
	}
	return name != ""
}

// plainValue matches a value that needs no quotes in a list element's key: nothing in it can be taken for the
// syntax around it, nor for a control sequence.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)

// elementText names the element of a list.
func elementText(e fieldpath.PathElement) string {
	switch {
	case e.Key != nil:
		return keyText(*e.Key)
	case e.Value != nil:
		return "=" + valueText(*e.Value)
	case e.Index != nil:
		return strconv.Itoa(*e.Index)
	}
	return ""
}

// keyText names a list element. A lone `name` stands for itself, unless it could
// be taken for an index.
func keyText(key value.FieldList) string {
	if len(key) == 1 && key[0].Name == "name" && key[0].Value.IsString() {
		name := key[0].Value.AsString()
		if plainValue.MatchString(name) && strings.Trim(name, "0123456789") != "" {
			return name
		}
	}
	parts := make([]string, len(key))
	for i, f := range key {
		parts[i] = f.Name + "=" + valueText(f.Value)
	}
	return strings.Join(parts, ",")
}

// valueText quotes strings that would otherwise read as something else.
func valueText(v value.Value) string {
	if !v.IsString() {
		return value.ToString(v)
	}
	s := v.AsString()
	_, notNumber := strconv.ParseFloat(s, 64)
	if s == "true" || s == "false" || s == "null" || notNumber == nil || !plainValue.MatchString(s) {
		return strconv.Quote(s)
	}
	return s
}

// Impact is one thing that a Change means beyond its fields: Pods that restart, an
// owner that sets the change back, a server that will refuse it.
type Impact struct {
	Code ImpactCode `json:"code"`
	// Text says what, on one line, and Advice what to do about it; either may name
	// fields and objects, never values. Advice is empty where there is nothing to do.
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"`
	// Brief is Text, less what differs among objects that change alike; empty where
	// nothing does.
	Brief string `json:"brief,omitempty"`
	// Fields are those that it is about, in path order.
	Fields Paths `json:"fields,omitempty"`
	// Owner is who owns the fields or the object, where the impact is about that.
	Owner string `json:"owner,omitempty"`
	// Source is what a tool keeps the object by, of one that is managed: "deploy in
	// https://example.com/shop.git".
	Source string `json:"source,omitempty"`
	// Pods counts those that would restart.
	Pods int `json:"pods,omitempty"`
}

// ImpactCode names a kind of Impact, for programs.
type ImpactCode string

// The kinds of Impact.
const (
	ImpactRollout       ImpactCode = "rollout"        // the Pods of a workload restart, now or later
	ImpactManaged       ImpactCode = "managed"        // something else keeps the whole object as it is
	ImpactTerminating   ImpactCode = "terminating"    // the object is being deleted, and is left alone
	ImpactOwned         ImpactCode = "owned"          // another manager owns fields that change
	ImpactCoOwned       ImpactCode = "co-owned"       // a list element whose owner could not remove it any more
	ImpactAutoscaled    ImpactCode = "autoscaled"     // an autoscaler sets fields that change
	ImpactApplied       ImpactCode = "applied"        // kubectl's client-side apply sets fields that change
	ImpactImmutable     ImpactCode = "immutable"      // the server will refuse the change
	ImpactInvalid       ImpactCode = "invalid"        // the server will refuse a value, by the schema
	ImpactRefused       ImpactCode = "refused"        // the server refused the change in a dry run
	ImpactAltered       ImpactCode = "altered"        // in a dry run, server or webhook made another of it
	ImpactUntried       ImpactCode = "untried"        // a dry run was asked for, and there was none
	ImpactNotIdempotent ImpactCode = "not-idempotent" // evaluating the result changes it again
	ImpactOverwritten   ImpactCode = "overwritten"    // one rule undoes what another wrote
)

// Refuses reports whether the server would refuse the change.
func (c ImpactCode) Refuses() bool {
	return c == ImpactImmutable || c == ImpactInvalid || c == ImpactRefused
}

// Concerns reports whether it is about a field, about what holds it or about something in it.
func (i *Impact) Concerns(field fieldpath.Path) bool {
	return len(i.Fields) == 0 || slices.ContainsFunc(i.Fields, func(p fieldpath.Path) bool {
		n := min(len(p), len(field))
		return p[:n].Equals(field[:n])
	})
}

// Alike is the Text for several objects that change alike.
func (i *Impact) Alike() string { return cmp.Or(i.Brief, i.Text) }

// Paths are paths that stand in files in structured-merge-diff's notation, as that of a FieldChange does.
type Paths []fieldpath.Path

// MarshalJSON writes the elements of each path.
func (p Paths) MarshalJSON() ([]byte, error) {
	out := make([][]string, len(p))
	for i, path := range p {
		var err error
		if out[i], err = PathElements(path); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Paths) UnmarshalJSON(text []byte) error {
	var in [][]string
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*p = make(Paths, len(in))
	for i, elements := range in {
		var err error
		if (*p)[i], err = ParsePathElements(elements); err != nil {
			return fmt.Errorf("path %d: %w", i, err)
		}
	}
	return nil
}
