// Package policyreport writes a run as the Kubernetes objects in which policy engines keep their results, a report for each object.
//
// Kyverno does the same: the report's scope names the object, and its results need
// not. The objects are YAML documents that kubectl apply takes, with names that do
// not change from run to run.
package policyreport

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// API is a kind of report.
type API struct {
	apiVersion        string
	kind, clusterKind string
	source            bool // a report as a whole has a source
}

// WGPolicy is the API of the Kubernetes policy working group, which Kyverno and
// others write and policy-reporter reads.
func WGPolicy() API {
	return API{apiVersion: "wgpolicyk8s.io/v1alpha2", kind: "PolicyReport", clusterKind: "ClusterPolicyReport"}
}

// OpenReports is the API that takes its place.
func OpenReports() API {
	return API{apiVersion: "openreports.io/v1alpha1", kind: "Report", clusterKind: "ClusterReport", source: true}
}

// Kind is the kind of the reports on objects in namespaces.
func (a API) Kind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(a.apiVersion, a.kind)
}

// ClusterKind is the kind of the reports on objects that have no namespace.
func (a API) ClusterKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(a.apiVersion, a.clusterKind)
}

// source names this program in the reports.
const source = "kubectl-mutate"

// clusterAnnotation names the cluster of a report's object, of a run over several.
const clusterAnnotation = "mutate.kubectl.dev/cluster"

// maxProblems bounds the report of what went wrong beside the objects: a report is
// an object that a server must take.
const maxProblems = 500

// New returns a report that writes one of the API's for each object, as it comes.
func New(api API, o output.Options) *Report {
	return &Report{api: api, out: o.Out}
}

// Report is the reports.
type Report struct {
	api      API
	out      io.Writer
	yaml     document // of one report, used again
	written  bool
	problems []report.Finding
}

// Add writes the report of an object that a rule matched.
func (p *Report) Add(object *report.Object) error {
	if len(object.Findings) == 0 {
		return nil
	}
	p.report(nameOf(object), object.Key, object.Findings)
	p.scope(object.Key)
	if err := p.write(); err != nil {
		return fmt.Errorf("%s: %w", object.Name, err)
	}
	return nil
}

// nameOf is the name of an object's report: the same for the same object, and no
// other program's.
func nameOf(o *report.Object) string {
	sum := sha256.Sum256([]byte(o.ID))
	return source + "-" + hex.EncodeToString(sum[:8])
}

// Problem adds a result to a report of its own. Of very many, the last are left out.
func (p *Report) Problem(problem report.Problem) error {
	if len(p.problems) == maxProblems {
		return nil
	}
	p.problems = append(p.problems, report.Finding{
		Rule: engine.RuleRef{Policy: problem.Where, Origin: problem.Origin}, Verdict: report.Error, Message: problem.Text,
	})
	return nil
}

// Write writes the report of the problems, if there are any.
func (p *Report) Write(evaluation.Summary) error {
	if len(p.problems) > 0 {
		p.report(source+"-problems", engine.ObjectKey{}, p.problems)
		return p.write()
	}
	if p.written {
		return nil
	}
	_, err := io.WriteString(p.out, "# No rule matched an object.\n")
	return err
}

// report begins a document with all but its scope.
func (p *Report) report(name string, of engine.ObjectKey, findings []report.Finding) {
	d := &p.yaml
	d.Reset()
	d.WriteString("---\n")
	kind := p.api.clusterKind
	if of.Namespace != "" {
		kind = p.api.kind
	}
	d.field(0, "apiVersion", p.api.apiVersion)
	d.field(0, "kind", kind)
	d.WriteString("metadata:\n")
	if of.Cluster != "" {
		d.WriteString("  annotations:\n")
		d.field(4, clusterAnnotation, of.Cluster)
	}
	d.WriteString("  labels:\n")
	d.field(4, "app.kubernetes.io/managed-by", source)
	d.field(2, "name", name)
	d.optional(2, "namespace", of.Namespace)
	d.WriteString("results:\n")
	counts := map[report.Verdict]int{}
	for i := range findings {
		counts[findings[i].Verdict]++
		d.result(&findings[i])
	}
	d.WriteString("summary:\n")
	for _, v := range []report.Verdict{report.Error, report.Fail, report.Pass, report.Skip, "warn"} {
		fmt.Fprintf(d, "  %s: %d\n", v, counts[v])
	}
	if p.api.source {
		d.field(0, "source", source)
	}
}

func (d *document) result(f *report.Finding) {
	d.WriteString("- category: Mutation\n")
	d.field(2, "message", f.Message)
	d.field(2, "policy", f.Rule.Policy)
	begun := false
	for _, property := range [][2]string{
		{"details", f.Details()}, {"dialect", f.Rule.Dialect}, {"origin", f.Rule.Origin}, {"outcome", f.Outcome}, {"via", f.Rule.Via},
	} {
		if property[1] != "" && !begun {
			d.WriteString("  properties:\n")
			begun = true
		}
		d.optional(4, property[0], property[1])
	}
	d.field(2, "result", string(f.Verdict))
	d.optional(2, "rule", f.Rule.Rule)
	d.WriteString("  scored: true\n")
	d.optional(2, "severity", f.Rule.Severity)
	d.field(2, "source", source)
}

// scope refers to the object.
func (p *Report) scope(k engine.ObjectKey) {
	d := &p.yaml
	d.WriteString("scope:\n")
	d.field(2, "apiVersion", k.GroupVersionKind().GroupVersion().String())
	d.field(2, "kind", k.Kind)
	d.field(2, "name", k.Name)
	d.optional(2, "namespace", k.Namespace)
	d.optional(2, "uid", string(k.UID))
}

func (p *Report) write() error {
	p.written = true
	_, err := p.out.Write(p.yaml.Bytes())
	return err
}

// document is a YAML document of fields that are texts. A library that writes
// any value takes as long for a report as a whole preview.
type document struct{ bytes.Buffer }

// field writes a text behind its name.
func (d *document) field(indent int, name, text string) {
	margin := strings.Repeat(" ", indent)
	d.WriteString(margin + name + ": ")
	switch {
	case strings.ContainsFunc(text, unprintable):
		d.WriteString(strconv.QuoteToASCII(text)) // its escapes are among YAML's
	case strings.TrimSpace(text) != text && strings.Contains(text, "\n"):
		d.WriteString(strconv.QuoteToASCII(text)) // what is a block's own margin, and its end, would be in doubt
	case strings.Contains(text, "\n"):
		d.WriteString("|-")
		for line := range strings.SplitSeq(text, "\n") {
			d.WriteString("\n" + margin + "  " + line)
		}
	case plain.MatchString(text) && !word.MatchString(text):
		d.WriteString(text)
	default:
		d.WriteString("'" + strings.ReplaceAll(text, "'", "''") + "'")
	}
	d.WriteByte('\n')
}

// optional writes a field unless it is empty.
func (d *document) optional(indent int, name, text string) {
	if text != "" {
		d.field(indent, name, text)
	}
}

var (
	// plain texts mean themselves without quotes, unless they are a word of YAML 1.1.
	plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	word  = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// unprintable reports whether YAML holds a character only as an escape, or it could
// mislead a reader.
func unprintable(r rune) bool { return r != '\n' && redact.Harmful(r) }
