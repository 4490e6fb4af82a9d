// Package policydecode reads the fields of a policy strictly, with the path of each in every error, and
// reports unknown fields.
package policydecode

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Report collects errors and findings about one policy.
type Report struct {
	Origin    string                      // as in engine.Document
	Line      func(field string) int      // as in engine.Document
	Policy    string                      // "ClusterPolicy team-labels"
	Namespace string                      // of a Policy; empty for a ClusterPolicy
	Warn      func(engine.CompileError)   // nil drops warnings
	CheckKind func(engine.KindName) error // as in engine.Compilation
	Errs      []error                     // *engine.CompileError
}

// NewReport returns the report of a document in a compilation.
func NewReport(d engine.Document, policy string, c *engine.Compilation) *Report {
	return &Report{Origin: d.Origin, Line: d.Line, Policy: policy, Warn: c.Warn, CheckKind: c.CheckKind}
}

func (r *Report) warn(e engine.CompileError) {
	if r.Warn != nil {
		r.Warn(e)
	}
}

// Node is one place in a policy document.
type Node struct {
	Report *Report
	Rule   string
	Path   string // "spec.rules[0].mutate"
	Value  any
}

// Error returns an error at this place.
func (n Node) Error(err error) engine.CompileError {
	r := n.Report
	e := engine.CompileError{Origin: r.Origin, Policy: r.Policy, Rule: n.Rule, Field: n.Path, Err: err}
	if r.Line != nil {
		e.Line = r.Line(n.Path)
	}
	return e
}

// PathInRule returns the path below the node's rule, such as "mutate.foreach[0].list"; the whole path of a
// node outside of all rules.
func (n Node) PathInRule() string {
	if rest, ok := strings.CutPrefix(n.Path, "spec.rules["); ok {
		if _, field, ok := strings.Cut(rest, "]."); ok {
			return field
		}
	}
	return n.Path
}

// Fail reports an error at this place.
func (n Node) Fail(format string, args ...any) {
	e := n.Error(fmt.Errorf(format, args...))
	n.Report.Errs = append(n.Report.Errs, &e)
}

// Lint reports a probable mistake.
func (n Node) Lint(format string, args ...any) {
	n.Report.warn(n.Error(fmt.Errorf(format, args...)))
}

// Finding reports a finding of a class, which decides its effect on a run.
func (n Node) Finding(c engine.LintClass, format string, args ...any) {
	n.Report.warn(n.Error(&engine.LintError{Class: c, Text: fmt.Sprintf(format, args...)}))
}

// Note reports what a reader should know of a correct policy.
func (n Node) Note(format string, args ...any) { n.Finding(engine.Note, format, args...) }

// Refuse reports something that a policy's own engine rejects, although it can be read here. For an installed
// policy it is a warning: an older version of the engine accepted it.
func (n Node) Refuse(engineName, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if n.Report.Origin == fromCluster {
		n.Lint("%s; %s would refuse this policy today", text, engineName)
		return
	}
	n.Finding(engine.Refused, "%s; %s refuses this policy", text, engineName)
}

// Empty reports an empty block that was to select objects, which is as bad as an engine.UnknownField; for an
// installed policy it is a warning.
func (n Node) Empty(format string, args ...any) {
	if n.Report.Origin == fromCluster {
		n.Lint(format, args...)
		return
	}
	n.Finding(engine.UnknownField, format, args...)
}

// LintKind reports a nonexistent kind.
func (n Node) LintKind(name engine.KindName) {
	if n.Report.CheckKind == nil {
		return
	}
	if err := n.Report.CheckKind(name); err != nil {
		n.Report.warn(n.Error(err))
	}
}

// Text reads a string; empty if missing.
func (n Node) Text() string {
	if n.Value == nil {
		return ""
	}
	s, ok := n.Value.(string)
	if !ok {
		n.Fail("must be a string, not %s", TypeName(n.Value))
	}
	return s
}

// Required reads a string that must be present and not blank.
func (n Node) Required() string {
	text := n.Text()
	if _, isText := n.Value.(string); strings.TrimSpace(text) == "" && (isText || n.Value == nil) {
		n.Fail("is missing")
	}
	return text
}

// OneOf reads a string that must be one of the known ones; the first is the default.
func (n Node) OneOf(known ...string) string {
	text := n.Text()
	if text == "" {
		return known[0]
	}
	return n.Known(text, known...)
}

// Known returns a string, and fails unless it is one of the known ones.
func (n Node) Known(text string, known ...string) string {
	if last := len(known) - 1; !slices.Contains(known, text) {
		n.Fail("must be %s or %s, not %q", strings.Join(known[:last], ", "), known[last], text)
	}
	return text
}

// Bool reads a boolean; false if missing.
func (n Node) Bool() bool {
	b, ok := n.Value.(bool)
	if !ok && n.Value != nil {
		n.Fail("must be true or false, not %s", TypeName(n.Value))
	}
	return b
}

// List reads a list; empty if missing.
func (n Node) List() []Node {
	if n.Value == nil {
		return nil
	}
	values, ok := n.Value.([]any)
	if !ok {
		n.Fail("must be a list, not %s", TypeName(n.Value))
		return nil
	}
	out := make([]Node, len(values))
	for i, v := range values {
		out[i] = Node{Report: n.Report, Rule: n.Rule, Path: n.Path + "[" + strconv.Itoa(i) + "]", Value: v}
	}
	return out
}

// Texts reads a list of strings.
func (n Node) Texts() []string {
	var out []string
	for _, item := range n.List() {
		out = append(out, item.Text())
	}
	return out
}

// TextMap reads a mapping of strings.
func (n Node) TextMap() map[string]string {
	f := n.Fields()
	if len(f.Values) == 0 {
		return nil
	}
	out := make(map[string]string, len(f.Values))
	for _, key := range slices.Sorted(maps.Keys(f.Values)) {
		out[key] = f.At(key).Text()
	}
	return out
}

// LabelSelector reads a Kubernetes label selector; nil if missing.
func (n Node) LabelSelector() *metav1.LabelSelector {
	if n.Value == nil {
		return nil
	}
	s, err := LabelSelector(n.Value)
	if err != nil {
		n.Fail("%w%s", err, engine.PlaceholderHint(err.Error()))
		return nil
	}
	if why := selector.Contradiction(s); why != "" {
		n.Lint("no object can have these labels: %s", why)
	}
	return s
}

// Labels reads a label selector and compiles it; nil if it is missing, or after a failure.
func (n Node) Labels(compile func(*metav1.LabelSelector) (*selector.Labels, error)) *selector.Labels {
	s := n.LabelSelector()
	if s == nil {
		return nil
	}
	l, err := compile(s)
	if err != nil {
		n.Fail("%w%s", err, engine.PlaceholderHint(err.Error()))
		return nil
	}
	return l
}

// namespacePattern matches the characters of a pattern for Namespace names.
var namespacePattern = regexp.MustCompile(`^[a-z0-9*?-]*$`)

// CheckNamespaces warns of patterns that match no Namespace name; variables are not judged.
func CheckNamespaces(n Node) {
	for _, item := range n.List() {
		if name, isText := item.Value.(string); isText && !strings.Contains(name, "{{") &&
			!namespacePattern.MatchString(name) {
			item.Lint("no Namespace can be called %q: only lower-case letters, digits and - are allowed%s", name, engine.PlaceholderHint(name))
		}
	}
}

// LabelSelector reads a Kubernetes label selector from a value, strictly.
func LabelSelector(value any) (*metav1.LabelSelector, error) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must be a label selector, not %s", TypeName(value))
	}
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, &s, true); err != nil {
		return nil, fmt.Errorf("is not a label selector: %w", err)
	}
	return &s, nil
}

// Fields reads the fields of a mapping; empty if missing.
func (n Node) Fields() *Fields {
	f := &Fields{Node: n}
	switch v := n.Value.(type) {
	case nil:
	case map[string]any:
		f.Values = v
	default:
		n.Fail("must be a mapping, not %s", TypeName(v))
	}
	return f
}

// Fields is a mapping of a policy that records which of its keys were read.
type Fields struct {
	Node
	Values map[string]any
	known  []string
	others []misplaced
}

// misplaced are fields that belong elsewhere.
type misplaced struct {
	place string
	keys  []string
}

// At returns the place of one field, present or not.
func (f *Fields) At(key string) Node {
	f.known = append(f.known, key)
	path := key
	if f.Path != "" {
		path = f.Path + "." + key
	}
	return Node{Report: f.Report, Rule: f.Rule, Path: path, Value: f.Values[key]}
}

// Has reports whether a field is present and not null.
func (f *Fields) Has(key string) bool {
	f.known = append(f.known, key)
	return f.Values[key] != nil
}

// Accept marks fields of the language that do not concern mutation.
func (f *Fields) Accept(keys ...string) { f.known = append(f.known, keys...) }

// Elsewhere says where misplaced fields belong, such as "below mutate".
func (f *Fields) Elsewhere(place string, keys ...string) {
	f.others = append(f.others, misplaced{place, keys})
}

// fromCluster is the Origin of documents from the cluster.
const fromCluster = "cluster"

// Done reports an engine.UnknownField for each unread field. In an installed policy it is a warning about a
// later version of the API, since a server keeps only fields of its API.
func (f *Fields) Done() {
	var unknown []string
	for key := range f.Values {
		if !slices.Contains(f.known, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	known := f.known // without the fields below
	for _, key := range unknown {
		if f.Report.Origin == fromCluster {
			f.At(key).Lint("is a field of a later version of this API, and has no effect here")
			continue
		}
		text := "unknown field, it has no effect"
		if i := slices.IndexFunc(f.others, func(m misplaced) bool { return slices.Contains(m.keys, key) }); i >= 0 {
			text = "has no effect here: it belongs " + f.others[i].place
		} else if meant := engine.Nearest(key, slices.Values(known)); meant != "" {
			text += fmt.Sprintf("; did you mean %q?", meant)
		}
		f.At(key).Finding(engine.UnknownField, "%s", text)
	}
}

// DoneObject is Done for a whole document, whose metadata and status are not read.
func (f *Fields) DoneObject() {
	f.Accept("apiVersion", "kind", "status")
	metadata := f.At("metadata").Fields()
	metadata.Accept(metadataFields...)
	metadata.Done()
	f.Done()
}

// TypeName returns the name of a value's type for errors.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64, int:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return fmt.Sprintf("%T", v)
}

// Err joins the report's errors; nil if there are none.
func (r *Report) Err() error { return errors.Join(r.Errs...) }

// flatMap matches a JSON pointer that goes on below a key of a map of strings.
var flatMap = regexp.MustCompile(`^(.*/(?:metadata/(?:labels|annotations)|matchLabels|nodeSelector)/)([^/]+/.*[^/])$`)

// PointerSlip describes a JSON pointer that goes on below a label or an annotation, probably because of a
// slash in its key; empty for none.
func PointerSlip(pointer string) string {
	found := flatMap.FindStringSubmatch(pointer)
	if found == nil {
		return ""
	}
	return fmt.Sprintf("%s goes on below a text; a / in a key is written ~1: %s", pointer, found[1]+strings.ReplaceAll(found[2], "/", "~1"))
}

// PointerNames returns the names in a JSON pointer, with list items in brackets.
func PointerNames(pointer string) (names []string) {
	for token := range strings.SplitSeq(strings.Trim(pointer, "/"), "/") {
		if _, err := strconv.Atoi(token); err == nil || token == "-" || strings.Contains(token, "{{elementIndex") {
			names = append(names, "["+token+"]")
		} else {
			names = append(names, jsonpointer.Unescape(token))
		}
	}
	return names
}

// fieldName returns a name as in engine.Description.Changes: in quotes if it contains a separator of names.
func fieldName(name string) string {
	if strings.ContainsAny(name, "./[]") && !strings.Contains(name, "{{") {
		return `"` + name + `"`
	}
	return name
}

// JoinNames joins names to a path, with list items in brackets.
func JoinNames(names []string) string {
	var out strings.Builder
	for _, name := range names {
		if strings.HasPrefix(name, "[") {
			out.WriteString(name)
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('.')
		}
		out.WriteString(fieldName(name))
	}
	return out.String()
}

// metadataFields are the metadata fields of all objects.
//
//nolint:gochecknoglobals // an immutable table
var metadataFields = []string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
	"deletionTimestamp",
	"deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields",
}

// MetadataSlip says that no object has such a metadata field, which may be a misspelling; empty if objects
// have it.
func MetadataSlip(field string) string {
	if slices.Contains(metadataFields, field) {
		return ""
	}
	text := fmt.Sprintf("metadata has no field %s", field)
	if meant := engine.Nearest(field, slices.Values(metadataFields)); meant != "" {
		text += fmt.Sprintf("; did you mean %s?", meant)
	}
	return text
}
