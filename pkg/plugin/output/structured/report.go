// Package structured prints what a run finds for programs: as one JSON or YAML report, as names, as
// manifests, as JSON patches, or through a template or query.
//
// A report is written element by element, so that memory does not grow with the run.
package structured

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// version of all documents; kind and list of a preview.
const (
	version     = "mutate.kubectl.dev/v1alpha1"
	previewKind = "PreviewReport"
	previewList = "changes"
)

// Report prints one report object: what was evaluated, compared or written. The elements of its list are
// written as they come, unless a template or query needs the whole report.
type Report struct {
	output.Options
	jsonWriter // what is not written yet
	yaml       bool
	kind, list string
	fields     int // that are written
	items      int // of the list
	problems   []string
	clusters   []output.Cluster // not written yet
	outcomes   map[write.Outcome]int
	conflicts  output.Conflicts

	held  *bytes.Buffer                       // the report as JSON, for whole
	whole func(report []byte) (string, error) // returns the output of a template or query; nil for the report
}

// NewReport returns a printer of the report, or of the result of the options' query. It fails for an invalid
// query.
func NewReport(o output.Options, asYAML bool) (*Report, error) {
	r := &Report{
		Options: o, yaml: asYAML, kind: previewKind, list: previewList,
		outcomes: map[write.Outcome]int{},
	}
	switch {
	case o.Compares:
		r.kind, r.list = "ComparisonReport", "differences"
	case o.Tests:
		r.kind, r.list = "TestReport", "results"
	case o.Writes:
		r.kind, r.list = "ApplyReport", "results"
	}
	if o.Query == "" {
		return r, nil
	}
	query, err := jmespath.Compile(o.Query)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", o.Query, err)
	}
	r.hold(func(report any) (string, error) {
		found, err := query.Search(report)
		if err != nil {
			return "", fmt.Errorf("query: %w", brief(err))
		}
		return MarshalText(found, asYAML)
	})
	return r, nil
}

// hold makes the report print the result of whole instead of itself.
func (r *Report) hold(whole func(report any) (string, error)) {
	r.yaml, r.held = false, &bytes.Buffer{}
	r.whole = func(text []byte) (string, error) {
		var report any
		if err := json.Unmarshal(text, &report); err != nil {
			return "", fmt.Errorf("reading the report: %w", err)
		}
		return whole(report)
	}
}

// Print adds an object that changes, needs a remark, differs or was to be written, or a problem. The summary
// ends the report, except in a run that writes.
func (r *Report) Print(s output.Shown) error {
	event := s.Event()
	switch event.(type) {
	case output.Fleet, output.Written:
	default:
		if r.Writes {
			return nil // what several clusters would change, which is shown before they are asked
		}
	}
	switch e := event.(type) {
	case output.Fleet:
		r.clusters = append(r.clusters, e.Clusters...)
	case output.Evaluated:
		if output.Listed(e.Change, r.Explain) {
			return r.add(e.Subject, r.reported(e.Change))
		}
	case output.Compared:
		if e.Verdict != compare.Same {
			return r.add(e.Subject, differenceOf(e))
		}
	case output.Written:
		r.outcomes[e.Outcome]++
		r.conflicts.Add(e)
		return r.add(e.Key, r.result(e))
	case output.Tested:
		return r.add(e.Object, tested(&e))
	case output.Tests:
		return r.end(testCounts(&e))
	case output.Problem:
		r.problems = append(r.problems, e.Err.Error())
	case output.Summary:
		return r.end(summaryOf(e.Summary))
	case output.Comparison:
		return r.end(conclusionOf(e.Summary))
	}
	return nil
}

// Close ends the report of a run that writes; the summary has ended any other.
func (r *Report) Close() error {
	if !r.Writes {
		return nil
	}
	return r.end(Object{{"outcomes", r.outcomes}}.addIf(len(r.conflicts) > 0, "conflicts", r.conflicts))
}

// add writes an element of the list.
func (r *Report) add(about engine.ObjectKey, v any) error {
	if err := r.flush(cmp.Or(r.begin(), r.item(v))); err != nil {
		return fmt.Errorf("%s: %w", about, err)
	}
	return nil
}

func (r *Report) begin() error {
	if r.fields > 0 {
		return nil
	}
	return cmp.Or(r.field("apiVersion", version), r.field("kind", r.kind), r.field("context", r.Context),
		r.listClusters())
}

// listClusters writes the results of the clusters once, as soon as they are known: in a run that writes at
// the end.
func (r *Report) listClusters() error {
	if r.clusters == nil {
		return nil
	}
	clusters := r.clusters
	r.clusters = nil
	return r.field("clusters", clusters)
}

// field adds a field of the report.
func (r *Report) field(name string, v any) error {
	r.name(name)
	if r.yaml {
		return r.lines("", "", Object{{name, v}})
	}
	return r.value(v, indent)
}

// name begins a field of JSON.
func (r *Report) name(name string) {
	if r.fields++; r.yaml {
		return
	}
	before := ",\n"
	if r.fields == 1 {
		before = "{\n"
	}
	r.WriteString(before + indent + `"` + name + `": `)
}

// lines adds a value as YAML, with a margin before its first line and another before the others.
func (r *Report) lines(first, others string, v any) error {
	text, err := MarshalText(v, true)
	margin := first
	for line := range strings.Lines(text) {
		if line != "\n" {
			r.WriteString(margin)
		}
		r.WriteString(line)
		margin = others
	}
	return err
}

// flush writes what was added, unless that failed.
func (r *Report) flush(err error) error {
	out := r.Out
	if r.whole != nil {
		out = r.held
	}
	if err == nil {
		_, err = r.WriteTo(out)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func (r *Report) item(v any) error {
	r.items++
	switch {
	case r.yaml && r.items == 1:
		r.name(r.list)
		r.WriteString(r.list + ":\n")
		fallthrough
	case r.yaml:
		return r.lines("- ", "  ", v)
	case r.items == 1:
		r.name(r.list)
		r.WriteString("[\n")
	default:
		r.WriteString(",\n")
	}
	const margin = indent + indent
	r.WriteString(margin)
	return r.value(v, margin)
}

// end ends the report with its problems and summary, or prints the result of the template or query.
func (r *Report) end(summary any) error {
	err := r.begin()
	switch {
	case r.items == 0:
		err = cmp.Or(err, r.field(r.list, []any{}))
	case !r.yaml:
		r.WriteString("\n" + indent + "]")
	}
	err = cmp.Or(err, r.listClusters())
	if len(r.problems) > 0 {
		err = cmp.Or(err, r.field("problems", r.problems))
	}
	err = cmp.Or(err, r.field("summary", summary))
	if !r.yaml {
		r.WriteString("\n}\n")
	}
	if err = r.flush(err); err != nil || r.whole == nil {
		return err
	}
	text, err := r.whole(r.held.Bytes())
	if err != nil {
		return err
	}
	_, err = io.WriteString(r.Out, text)
	return err
}

// Object has the fields of an object in the order of its JSON.
type Object []Member

// Member is a field of an Object.
type Member struct {
	Name  string
	Value any
}

// Add appends a field.
func (m Object) Add(name string, value any) Object { return append(m, Member{name, value}) }

// With appends a field, unless its string is empty.
func (m Object) With(name, text string) Object { return m.addIf(text != "", name, text) }

func (m Object) addIf(is bool, name string, value any) Object {
	if !is {
		return m
	}
	return m.Add(name, value)
}

// MarshalJSON implements json.Marshaler.
func (m Object) MarshalJSON() ([]byte, error) {
	var w jsonWriter
	err := w.value(m, "")
	return w.Bytes(), err
}

// mapped replaces Objects by maps, for YAML.
func mapped(v any) any {
	switch v := v.(type) {
	case Object:
		out := make(map[string]any, len(v))
		for _, f := range v {
			out[f.Name] = mapped(f.Value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = mapped(v[i])
		}
		return out
	}
	return v
}

// jsonWriter writes the same indented JSON as the library. It knows objects, lists and plain strings, and
// leaves the rest to the library, with which a whole run would take 1.7 times as long.
type jsonWriter struct{ bytes.Buffer }

// value writes a value, with a margin before all lines but the first.
func (w *jsonWriter) value(v any, margin string) error {
	switch v := v.(type) {
	case string:
		return w.text(v)
	case int64:
		w.WriteString(strconv.FormatInt(v, 10))
		return nil
	case Object:
		if len(v) == 0 {
			w.WriteString("{}")
			return nil
		}
		return w.object(v, margin)
	case map[string]any:
		if len(v) > 0 {
			fields := make(Object, 0, len(v))
			for _, name := range slices.Sorted(maps.Keys(v)) {
				fields = fields.Add(name, v[name])
			}
			return w.object(fields, margin)
		}
	case []any:
		if len(v) > 0 {
			return w.list(v, margin)
		}
	}
	return w.encoded(v, margin)
}

// encoded writes a value with the library.
func (w *jsonWriter) encoded(v any, margin string) error {
	text, err := indented(v, margin)
	w.WriteString(text)
	return err
}

func (w *jsonWriter) text(s string) error {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return w.encoded(s, "")
		}
	}
	w.WriteByte('"')
	w.WriteString(s)
	w.WriteByte('"')
	return nil
}

func (w *jsonWriter) object(fields Object, margin string) error {
	before, below := "{\n", margin+indent
	for _, f := range fields {
		w.WriteString(before)
		w.WriteString(below)
		if err := w.text(f.Name); err != nil {
			return err
		}
		w.WriteString(": ")
		if err := w.value(f.Value, below); err != nil {
			return err
		}
		before = ",\n"
	}
	w.WriteString("\n")
	w.WriteString(margin)
	w.WriteString("}")
	return nil
}

func (w *jsonWriter) list(items []any, margin string) error {
	before, below := "[\n", margin+indent
	for _, item := range items {
		w.WriteString(before)
		w.WriteString(below)
		if err := w.value(item, below); err != nil {
			return err
		}
		before = ",\n"
	}
	w.WriteString("\n")
	w.WriteString(margin)
	w.WriteString("]")
	return nil
}

// WriteList prints items as one object of a kind, as JSON or YAML.
func WriteList[T any](out io.Writer, asYAML bool, kind string, items []T) error {
	if items == nil {
		items = []T{} // an empty list, not null
	}
	return Write(out, asYAML, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []T    `json:"items"`
	}{version, kind, items})
}

// Write prints a value as MarshalText returns it.
func Write(out io.Writer, asYAML bool, v any) error {
	text, err := MarshalText(v, asYAML)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// WriteNames prints names as -o name does, one per line.
func WriteNames(out io.Writer, names ...string) error {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(redact.Escape(name, "") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

const indent = "    "

// MarshalText returns a value as YAML, or as indented JSON; it ends with a line break.
func MarshalText(v any, asYAML bool) (string, error) {
	if asYAML {
		out, err := output.MarshalYAML(mapped(v))
		return string(out), err
	}
	var w jsonWriter
	err := w.value(v, "")
	return w.String() + "\n", err
}

// MarshalLine returns a value as one line of JSON.
func MarshalLine(v any) (string, error) {
	out, err := compact(v)
	return string(out) + "\n", err
}

// compact returns JSON in one line, escaped for a terminal.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return redact.EscapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// indented returns indented JSON, with a margin before all lines but the first.
func indented(v any, margin string) (string, error) {
	text, err := compact(v)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, margin, indent)
	return b.String(), err
}
