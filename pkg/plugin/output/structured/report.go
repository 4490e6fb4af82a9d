package structured

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// version is that of all documents.
const version = "mutate.kubectl.dev/v1alpha1"

// ReportWriter writes a document with the fields that every report has: one object with a
// list, whose elements are written as they come.
type ReportWriter struct {
	jsonWriter
	out      io.Writer
	yaml     bool
	head     Head
	fields   int  // that are written
	items    int  // of the list
	listed   bool // the clusters are written
	problems []string
}

// Head is what a report says it is.
type Head struct {
	Kind    string
	List    string // the field of its list
	Context output.Context
	// Clusters are those of a run over several; nil of a run on one.
	Clusters []Cluster
}

// Cluster is what a report says of one cluster of several.
type Cluster struct {
	output.Cluster
	Problem string `json:"problem,omitempty"` // the first
}

// clusters returns what a report says of clusters.
func (o *encoder) clusters(e output.Fleet) []Cluster {
	out := make([]Cluster, len(e.Clusters))
	for i, c := range e.Clusters {
		out[i].Cluster = c
		if c.Err != nil {
			out[i].Problem = c.Err.Error()
		}
	}
	return out
}

// NewReportWriter returns a report of which nothing is written yet.
func NewReportWriter(out io.Writer, asYAML bool, head Head) *ReportWriter {
	return &ReportWriter{out: out, yaml: asYAML, head: head}
}

func (r *ReportWriter) begin() error {
	if r.fields > 0 {
		return nil
	}
	return cmp.Or(
		r.field("apiVersion", version), r.field("kind", r.head.Kind), r.field("context", r.head.Context), r.listClusters(),
	)
}

// listClusters writes what came of each cluster, once and as soon as it is known: of a run that writes at the end.
func (r *ReportWriter) listClusters() error {
	if r.listed || r.head.Clusters == nil {
		return nil
	}
	r.listed = true
	return r.field("clusters", r.head.Clusters)
}

// field adds a field of the object to what is to be written.
func (r *ReportWriter) field(name string, v any) error {
	if r.yaml {
		r.fields++
		return r.lines(map[string]any{name: v})
	}
	r.name(name)
	return r.value(v, indent)
}

// lines adds a value as YAML.
func (r *ReportWriter) lines(v any) error {
	text, err := MarshalText(v, true)
	r.WriteString(text)
	return err
}

// element adds a value as an element of a list of YAML, whose lines are as long as they are by themselves.
func (r *ReportWriter) element(v any) error {
	text, err := MarshalText(v, true)
	margin := "- "
	for line := range strings.Lines(text) {
		if line != "\n" {
			r.WriteString(margin)
		}
		r.WriteString(line)
		margin = "  "
	}
	return err
}

// name adds what stands before the value of a field of JSON.
func (r *ReportWriter) name(name string) {
	before := ",\n"
	if r.fields == 0 {
		before = "{\n"
	}
	r.fields++
	r.WriteString(before + indent + `"` + name + `": `)
}

// flush writes what was added, unless that failed.
func (r *ReportWriter) flush(err error) error {
	if err == nil {
		_, err = r.WriteTo(r.out)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Add writes an element of the list.
func (r *ReportWriter) Add(v any) error { return r.flush(cmp.Or(r.begin(), r.item(v))) }

func (r *ReportWriter) item(v any) error {
	if r.items++; r.yaml {
		if r.items == 1 {
			r.fields++
			r.WriteString(r.head.List + ":\n")
		}
		return r.element(v)
	}
	if r.items == 1 {
		r.name(r.head.List)
		r.WriteString("[\n")
	} else {
		r.WriteString(",\n")
	}
	const margin = indent + indent
	r.WriteString(margin)
	return r.value(v, margin)
}

// Problem adds the text of what went wrong beside the elements.
func (r *ReportWriter) Problem(text string) { r.problems = append(r.problems, text) }

// Close ends the report with its problems, if there are any, and its summary.
func (r *ReportWriter) Close(summary any) error {
	err := cmp.Or(r.begin(), r.endList(), r.listClusters())
	if len(r.problems) > 0 {
		err = cmp.Or(err, r.field("problems", r.problems))
	}
	err = cmp.Or(err, r.field("summary", summary))
	if !r.yaml {
		r.WriteString("\n}\n")
	}
	return r.flush(err)
}

// endList ends the list.
func (r *ReportWriter) endList() error {
	switch {
	case r.items == 0:
		return r.field(r.head.List, []any{})
	case !r.yaml:
		r.WriteString("\n" + indent + "]")
	}
	return nil
}
