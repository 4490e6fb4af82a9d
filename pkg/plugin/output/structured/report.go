// Package structured prints what a run finds for programs: as one JSON or YAML
// report, as names, as manifests, as JSON patches, or through a template or query.
//
// A report is one object with a long list in it. It is written piece by piece, so
// that memory does not grow with the run.
package structured

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// version is that of all documents, and previewKind and previewList are of the report of what was evaluated.
const (
	version     = "mutate.kubectl.dev/v1alpha1"
	previewKind = "PreviewReport"
	previewList = "changes"
)

// Report prints one report object: what was evaluated, compared or written. It has a list, whose elements are written as they
// come, unless something is made of the whole report.
type Report struct {
	output.Options
	jsonWriter // what is not written yet
	yaml       bool
	kind, list string
	fields     int // that are written
	items      int // of the list
	problems   []string
	clusters   []output.Cluster // of a run over several that are not written yet
	outcomes   map[apply.Outcome]int
	conflicts  output.Conflicts

	held  *bytes.Buffer                       // the report as JSON, for whole
	whole func(report []byte) (string, error) // what is printed in its place; nil for the report
}

// NewReport returns a printer of the report, or of what the query of the options finds
// in it. It fails for a query that is none.
func NewReport(o output.Options, asYAML bool) (*Report, error) {
	r := &Report{Options: o, yaml: asYAML, kind: previewKind, list: previewList, outcomes: map[apply.Outcome]int{}}
	switch {
	case o.Compares:
		r.kind, r.list = "ComparisonReport", "differences"
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

// hold has something made of the whole report and printed instead.
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

// Print adds an object that would change, that needs a remark, that does not come out the same or that was to be written, or
// what went wrong beside the objects. The summary ends the report, but for that of a run that writes.
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
	case output.Problem:
		r.problems = append(r.problems, e.Err.Error())
	case output.Summary:
		return r.end(summaryOf(e.Summary))
	case output.Comparison:
		return r.end(conclusionOf(e.Summary))
	}
	return nil
}

// Close has nothing to add to the summary; a run that writes has none before.
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
	return cmp.Or(r.field("apiVersion", version), r.field("kind", r.kind), r.field("context", r.Context), r.listClusters())
}

// listClusters writes what came of each cluster, once and as soon as it is known: of a run that writes at the end.
func (r *Report) listClusters() error {
	if r.clusters == nil {
		return nil
	}
	clusters := r.clusters
	r.clusters = nil
	return r.field("clusters", clusters)
}

// field adds a field of the object to what is to be written.
func (r *Report) field(name string, v any) error {
	r.name(name)
	if r.yaml {
		return r.lines("", "", Object{{name, v}})
	}
	return r.value(v, indent)
}

// name adds what stands before the value of a field of JSON.
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

// lines adds a value as YAML behind a margin, as long as its lines are without it.
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

// end ends the report with its problems, if there are any, and its summary, or prints what is made of it.
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
