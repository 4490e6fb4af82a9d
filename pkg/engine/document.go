package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Document is one policy, one input that policies read besides themselves (a binding, a parameter, an
// exception), or one object of a manifest, and the place where it was read.
type Document struct {
	Key    ObjectKey // of the object
	object *unstructured.Unstructured
	// Origin is the place for messages: "policies/team.yaml:12", "stdin:1" or "cluster".
	Origin string
	// Line returns the line of a field, such as "spec.rules[0].match", or of its closest existing parent; nil
	// where lines are unknown.
	Line func(field string) int
}

// NewDocument returns the document of an object, with its Origin.
func NewDocument(u *unstructured.Unstructured, origin string) Document {
	return Document{Key: KeyOf(u), object: u, Origin: origin}
}

// Documents returns documents of objects without an Origin.
func Documents(objects ...*unstructured.Unstructured) []Document {
	out := make([]Document, len(objects))
	for i, u := range objects {
		out[i] = NewDocument(u, "")
	}
	return out
}

// Object returns the object.
func (d Document) Object() *unstructured.Unstructured { return d.object }

// Field returns the value at a path of fields; nil if there is none.
func (d Document) Field(path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(d.object.Object, path...)
	return value
}

// Names returns the names of the policy in RuleRefs: its own, with its namespace, and with its kind where
// several kinds share it.
func (d Document) Names() []string {
	return []string{
		d.Key.Name, cmp.Or(d.Key.Namespace, "default") + "/" + d.Key.Name, d.Key.Kind + "/" + d.Key.Name,
	}
}

// CompileError is a defect of a policy, in terms of the source that its author wrote. Dialects return several
// of them joined with errors.Join.
type CompileError struct {
	Origin string // as in Document
	Line   int    // of the field, in the file of Origin; 0 where it is not known
	Policy string // "ClusterPolicy team-labels"
	Rule   string // empty where the policy as a whole is meant
	Field  string // path in the document, such as "spec.rules[1].mutate.patchesJson6902"
	Err    error  // the problem and, if there is one, the remedy
}

// LintClass says what a finding about a policy that compiles means for a run.
type LintClass int

// The classes. Mistakes end a run: an UnknownField and a Refused policy.
const (
	Note          LintClass = iota + 1 // what a reader should know of a correct policy
	NothingToDo                        // the policy changes nothing; it may do other things
	UnknownPolicy                      // an exception or a binding names no policy of the run
	UnknownField                       // a field that the API of a policy does not have, or an empty match
	Refused                            // the policy can be evaluated here, but its own engine rejects it
	AsksUser                           // the policy depends on who makes a request: a warning if nobody says so
)

// LintError is a finding of a class.
type LintError struct {
	Class LintClass
	Text  string
}

// Error returns the Text.
func (e *LintError) Error() string { return e.Text }

// ClassOf returns the class of a finding; 0 for a warning without one.
func ClassOf(err error) LintClass {
	if lint := (*LintError)(nil); errors.As(err, &lint) {
		return lint.Class
	}
	return 0
}

// PolicyNames are the names of the policies of a run.
type PolicyNames map[string]bool

// Add adds a name.
func (n PolicyNames) Add(name string) { n[name] = true }

// Check returns a *LintError if a name, which may be a wildcard pattern, matches no policy.
func (n PolicyNames) Check(name string) error {
	if n[name] {
		return nil
	}
	for known := range n {
		if selector.MatchWildcard(name, known) {
			return nil
		}
	}
	text := fmt.Sprintf("there is no policy %q in this run, so this has no effect", name)
	if meant := Nearest(name, maps.Keys(n)); meant != "" {
		text += fmt.Sprintf("; did you mean %q?", meant)
	}
	return &LintError{UnknownPolicy, text}
}

// Place is the Origin with the line of the field, if known.
func (e *CompileError) Place() string {
	if i := strings.LastIndexByte(e.Origin, ':'); e.Line > 0 && i >= 0 {
		return e.Origin[:i+1] + strconv.Itoa(e.Line)
	}
	return e.Origin
}

// Severity is "note" for a Note, and "warning" for any other finding.
func (e *CompileError) Severity() string {
	if ClassOf(e.Err) == Note {
		return "note"
	}
	return "warning"
}

// Error says where, who and what: "team.yaml:3: ClusterPolicy p, rule r: spec.rules[0].mutate: reason".
func (e *CompileError) Error() string {
	var b strings.Builder
	if place := e.Place(); place != "" {
		fmt.Fprintf(&b, "%s: ", place)
	}
	b.WriteString(e.Policy)
	if e.Rule != "" {
		fmt.Fprintf(&b, ", rule %s", e.Rule)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, ": %s", e.Field)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return Ends(b.String(), MaxMessage)
}

// Unwrap returns the reason.
func (e *CompileError) Unwrap() error { return e.Err }

// JoinErrors joins errors on one line: "a; b". It returns nil for none.
func JoinErrors(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	all := make([]any, len(errs))
	for i, err := range errs {
		all[i] = err
	}
	return fmt.Errorf("%w"+strings.Repeat("; %w", len(errs)-1), all...)
}

// JoinedErrors splits an error of errors.Join, such as Dialect.Compile returns. Errors wrapped by a part stay
// in it; nil has none.
func JoinedErrors(err error) []error {
	if err == nil {
		return nil
	}
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range all.Unwrap() {
		out = append(out, JoinedErrors(e)...)
	}
	return out
}

// templates matches remnants of templates in a manifest: of Helm and its like, "{{ .Values.x }}", "{{
// include", "{{`", "{{- if", "[[ include", and of Terraform, "%{ for".
var templates = regexp.MustCompile("%\\{~?\\s*(?:for|if|else|endfor|endif)\\b|(?:\\{\\{|\\[\\[)-?\\s*(?:`|\\.(?:Values|Release|Chart|Capabilities|Files)\\b|(?:include|template|if|range|with|define|end|toYaml)\\b\\s*[^\\s|.(&=!<>]|end\\s*-?(?:\\}\\}|\\]\\]))")

// TemplateHint says what to do with a string that LooksLikeTemplate.
const TemplateHint = "this looks like a template that was not rendered: write what \"helm template\", or the tool that it is for, prints to a file, and use that"

// placeholders matches what Flux, Terraform and envsubst replace, and policies may hold all the same:
// "${NS:=shop}".
var placeholders = regexp.MustCompile(`\$\{\w+(?::?[=-][^}]*)?\}`)

// PlaceholderHint is TemplateHint after "; " where a string of which nothing comes has a placeholder of a
// template; else it is empty.
func PlaceholderHint(text string) string {
	if placeholders.MatchString(text) || LooksLikeTemplate(text) {
		return "; " + TemplateHint
	}
	return ""
}

// LooksLikeTemplate reports whether a string holds what Helm, or a tool like it, would have replaced.
func LooksLikeTemplate(text string) bool { return templates.MatchString(text) }
