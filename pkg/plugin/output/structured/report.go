package structured

import (
	"errors"
	"fmt"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// version is that of all documents.
const version = "mutate.kubectl.dev/v1alpha1"

// ReportWriter is a document with the fields that every report has.
type ReportWriter struct {
	writer
	head     Head
	begun    bool
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
	return &ReportWriter{writer: newWriter(out, asYAML), head: head}
}

func (r *ReportWriter) begin() error {
	if r.begun {
		return nil
	}
	r.begun = true
	fields := []struct {
		name  string
		value any
	}{{"apiVersion", version}, {"kind", r.head.Kind}, {"context", r.head.Context}}
	for _, f := range fields {
		if err := r.field(f.name, f.value); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return r.listClusters()
}

// listClusters writes what came of each cluster, once and as soon as it is known: of a run that writes at the end.
func (r *ReportWriter) listClusters() error {
	if r.listed || r.head.Clusters == nil {
		return nil
	}
	r.listed = true
	return r.field("clusters", r.head.Clusters)
}

// Add adds an element to the list.
func (r *ReportWriter) Add(v any) error {
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.item(r.head.List, v); err != nil {
		return err
	}
	return r.Flush()
}

// Problem adds the text of what went wrong beside the elements.
func (r *ReportWriter) Problem(text string) { r.problems = append(r.problems, text) }

// Close ends the report with its problems, if there are any, and its summary.
func (r *ReportWriter) Close(summary any) error {
	if err := r.begin(); err != nil {
		return err
	}
	if err := errors.Join(r.endList(r.head.List), r.listClusters()); err != nil {
		return err
	}
	if len(r.problems) > 0 {
		if err := r.field("problems", r.problems); err != nil {
			return err
		}
	}
	if err := r.field("summary", summary); err != nil {
		return err
	}
	r.end()
	if !r.yaml {
		r.put("\n")
	}
	return r.Flush()
}
