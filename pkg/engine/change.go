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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Change is everything the run did to one object. Before and After are the same object where nothing changed,
// and nil where the object does not exist (the missing target of a mutate-existing rule).
type Change struct {
	Subject       ObjectKey
	Before, After *unstructured.Unstructured
	// Target is the input of the evaluation, to repeat it.
	Target Target
	// Scoped reports whether the user chose the object, so that its own rules ran. It is false if only a
	// mutate-existing rule reached it.
	Scoped bool
	// Fields are the differences between Before and After as the server reads them, in path order. They are
	// computed from the steps, never reported by a dialect.
	Fields []FieldChange
	// Steps are in the order in which they happened. A rule that did not match has a Step only if the run keeps
	// reasons.
	Steps []Step
	// Asked are the rules evaluated on the object; changes may share the slice. A rule without a step did not
	// match.
	Asked []RuleRef
	// Impacts are consequences of the change beyond its fields, as far as the run reviewed it
	// (evaluation.Options.Review).
	Impacts []Impact
	// Created is how a creation of the object, given as Before, would differ: After has only these differences,
	// and Steps only the steps that make them, all AsCreated. It is nil where nothing differs, or the operation
	// was chosen. It is shown, and never written.
	Created *Change
	// AsCreated reports whether the change is the Created of another one.
	AsCreated bool
	// Shown is the change without content made from Secrets; nil where nothing is withheld.
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

// Denied reports whether admission would refuse the resulting object.
func (c *Change) Denied() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Outcome == Denied })
}

// Managed reports whether something else keeps the object as it is: it is written only if the user asks for
// it.
func (c *Change) Managed() bool {
	return slices.ContainsFunc(c.Impacts, func(i Impact) bool { return i.Code == ImpactManaged })
}

// Ignored reports whether a matching rule ignores the object, because the object or the user says so.
func (c *Change) Ignored() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Ignored() })
}

// Refused reports whether the server would refuse the change, as far as known.
func (c *Change) Refused() bool {
	return slices.ContainsFunc(c.Impacts, func(i Impact) bool { return i.Code.Refuses() })
}

// Incomplete reports whether a step failed, was denied or is unsupported, so that the full effect of the
// policies on the object is unknown; false for nil.
func (c *Change) Incomplete() bool {
	return c != nil && slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Outcome.Incomplete() })
}

// ChangeKind is how a field differs.
type ChangeKind string

// The kinds of change. A moved element keeps its content and changes its place in an ordered list.
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
	// From and To are the values before and after: From is nil for an added field, To for a removed one. A moved
	// element has its old and new index, as int64.
	From, To any `json:"-"`
	// Withheld reports that a value belongs to a Secret and is masked in From and To.
	Withheld bool `json:"withheld,omitempty"`
	// Secret reports that a value belongs to a Secret and is shown all the same.
	Secret bool `json:"secret,omitempty"`
	// SecretFrom is the position, from 1, of the first element of Path made from a Secret; 0 for none.
	SecretFrom int `json:"secretFrom,omitempty"`
	// Writer is the last rule that wrote the field; nil where nothing was evaluated.
	Writer *RuleRef `json:"rule,omitempty"`
}

// Rule is the Writer of the field; zero without one.
func (f *FieldChange) Rule() RuleRef { return ptr.Deref(f.Writer, RuleRef{}) }

// AppliedPatches is the annotation that records, on targets of Kyverno's rules, the changes of each rule.
const AppliedPatches = "policies.kyverno.io/last-applied-patches"

//nolint:gochecknoglobals // never modified
var recordPath = fieldpath.MakePathOrDie("metadata", "annotations", AppliedPatches)

// Records reports whether the field is the AppliedPatches annotation, which repeats the other fields.
func (f *FieldChange) Records() bool {
	n := len(f.Path)
	if n < 2 || n > len(recordPath) || !f.Path.Equals(recordPath[:n]) {
		return false
	}
	added, _ := f.To.(map[string]any)
	return n == len(recordPath) || f.Kind == Added && len(added) == 1 && added[AppliedPatches] != nil
}

// addsRecord reports whether the field adds an object's first annotations, AppliedPatches among them.
func (f *FieldChange) addsRecord() bool {
	added, _ := f.To.(map[string]any)
	return f.Kind == Added && f.Path.Equals(recordPath[:2]) && len(added) > 1 && added[AppliedPatches] != nil
}

// HeldBack returns one step for each rule that was skipped and did nothing else to the object, however many
// triggers and rounds it had.
func (c *Change) HeldBack() []*Step {
	var out []*Step
	for i := range c.Steps {
		s := &c.Steps[i]
		more := func(other Step) bool {
			return other.Rule == s.Rule && other.Outcome != Skipped && other.Outcome != NotMatched
		}
		if s.Outcome == Skipped && !slices.ContainsFunc(c.Steps, more) &&
			!slices.ContainsFunc(out, func(other *Step) bool { return other.Rule == s.Rule }) {
			out = append(out, s)
		}
	}
	return out
}

// SplitRecords separates the fields that a reader counts from Records and fields that contain one.
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

// ShownPath returns a path to the field, or to a part of it, as it may be shown: HiddenValue ends it in place
// of the first element made from a Secret, such as a name in the value. Other paths are returned as they are.
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

// fieldChangeJSON is a FieldChange in files. Place is for people; Elements, in structured-merge-diff's
// notation, is read back.
type fieldChangeJSON struct {
	Place    string   `json:"path"`
	Elements []string `json:"elements"`
	fieldChange
}

// fieldChange is a FieldChange without its methods.
type fieldChange FieldChange

// MarshalJSON writes the path in both notations and everything but the values: files hold them once, in the
// states of the object.
func (f FieldChange) MarshalJSON() ([]byte, error) {
	elements, err := PathElements(f.Path)
	if err != nil {
		return nil, err
	}
	return json.Marshal(fieldChangeJSON{PathString(f.Path), elements, fieldChange(f)})
}

// UnmarshalJSON reads the output of MarshalJSON.
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

// ParsePathElements reverses PathElements. An empty list is an error.
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

// PathString formats a path for people: `spec.containers[web].ports[containerPort=80,protocol=TCP]`,
// `metadata.labels["app.kubernetes.io/name"]`, `metadata.finalizers[=keep]`, `spec.args[0]`. Different paths
// have different strings; control and zero-width characters are escaped. The path of a whole object is the
// empty string.
func PathString(p fieldpath.Path) string { return pathText(p, elementText) }

// PathPattern is PathString with [*] for the elements of lists: equal for the same field of several elements.
func PathPattern(p fieldpath.Path) string {
	return pathText(p, func(fieldpath.PathElement) string { return "*" })
}

// pathText formats a path, with a function for its list elements.
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
// expression would take some 4 % of a run.)
func isPlainName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '-' && (c < '0' || '9' < c)) {
			return false
		}
	}
	return name != ""
}

// plainValue matches a value that needs no quotes in a list element's key: it cannot be taken for syntax or a
// control sequence.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)

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

// keyText formats the key of a list element. A key of only `name` is its value, unless it could be an index.
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

// valueText quotes strings that would read as something else.
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

// Impact is one consequence of a Change beyond its fields: Pods restart, an owner sets the change back, a
// server will refuse it.
type Impact struct {
	Code ImpactCode `json:"code"`
	// Text states the impact on one line, and Advice the remedy; either may name fields and objects, never
	// values. Advice is empty where there is nothing to do.
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"`
	// Brief is Text without the parts that differ among objects that change alike; empty where none do.
	Brief string `json:"brief,omitempty"`
	// Fields are the affected fields, in path order.
	Fields Paths `json:"fields,omitempty"`
	// Owner is the owner of the fields or the object, for an impact about ownership.
	Owner string `json:"owner,omitempty"`
	// Source is the source from which a tool manages the object: "deploy in https://example.com/shop.git".
	Source string `json:"source,omitempty"`
	// Pods counts the Pods that would restart.
	Pods int `json:"pods,omitempty"`
}

// ImpactCode names a kind of Impact, for programs.
type ImpactCode string

// The kinds of Impact.
const (
	ImpactRollout       ImpactCode = "rollout"        // the Pods of a workload restart, now or later
	ImpactManaged       ImpactCode = "managed"        // something else keeps the whole object as it is
	ImpactTerminating   ImpactCode = "terminating"    // the object is being deleted, and is not written
	ImpactOwned         ImpactCode = "owned"          // another manager owns fields that change
	ImpactCoOwned       ImpactCode = "co-owned"       // a list element whose owner could no longer remove it
	ImpactAutoscaled    ImpactCode = "autoscaled"     // an autoscaler sets fields that change
	ImpactApplied       ImpactCode = "applied"        // kubectl's client-side apply sets fields that change
	ImpactImmutable     ImpactCode = "immutable"      // the server will refuse the change
	ImpactInvalid       ImpactCode = "invalid"        // the server will refuse a value, by the schema
	ImpactRefused       ImpactCode = "refused"        // the server refused the change in a dry run
	ImpactAltered       ImpactCode = "altered"        // in a dry run, server or webhook altered the change
	ImpactUntried       ImpactCode = "untried"        // a dry run was asked for, and there was none
	ImpactNotIdempotent ImpactCode = "not-idempotent" // evaluating the result changes it again
	ImpactOverwritten   ImpactCode = "overwritten"    // one rule undoes what another wrote
)

// Refuses reports whether the server would refuse the change.
func (c ImpactCode) Refuses() bool {
	return c == ImpactImmutable || c == ImpactInvalid || c == ImpactRefused
}

// Concerns reports whether the impact is about a field, its parents or its content; always without Fields.
func (i *Impact) Concerns(field fieldpath.Path) bool {
	return len(i.Fields) == 0 || slices.ContainsFunc(i.Fields, func(p fieldpath.Path) bool {
		n := min(len(p), len(field))
		return p[:n].Equals(field[:n])
	})
}

// Alike returns the message for several objects that change alike.
func (i *Impact) Alike() string { return cmp.Or(i.Brief, i.Text) }

// Paths are paths that files hold in structured-merge-diff's notation, like a FieldChange.
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

// UnmarshalJSON reads the output of MarshalJSON.
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
