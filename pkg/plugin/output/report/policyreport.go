// This file writes a run as the Kubernetes objects in which policy engines keep their results, a report for
// each object.
//
// As in Kyverno, the scope of a report names the object, so that its results need not. The reports are YAML
// documents for kubectl apply, with the same names in each run.

package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// PolicyReportAPI is a kind of report.
type PolicyReportAPI struct {
	apiVersion        string
	kind, clusterKind string
	source            bool // a report as a whole has a source
}

// WGPolicyAPI is the API of the Kubernetes policy working group, which Kyverno and others write and
// policy-reporter reads.
func WGPolicyAPI() PolicyReportAPI {
	return PolicyReportAPI{
		apiVersion: "wgpolicyk8s.io/v1alpha2", kind: "PolicyReport",
		clusterKind: "ClusterPolicyReport",
	}
}

// OpenReportsAPI is the successor of WGPolicyAPI.
func OpenReportsAPI() PolicyReportAPI {
	return PolicyReportAPI{
		apiVersion: "openreports.io/v1alpha1", kind: "Report", clusterKind: "ClusterReport",
		source: true,
	}
}

// Kind returns the kind of reports on namespaced objects.
func (a PolicyReportAPI) Kind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(a.apiVersion, a.kind)
}

// ClusterKind returns the kind of reports on cluster-scoped objects.
func (a PolicyReportAPI) ClusterKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(a.apiVersion, a.clusterKind)
}

// source names this program in the reports.
const source = "kubectl-mutate"

// clusterAnnotation names the cluster of a report's object in a run over several.
const clusterAnnotation = "mutate.kubectl.dev/cluster"

// maxReportedProblems limits the report of problems, which a server must accept.
const maxReportedProblems = 500

// NewPolicyReport returns a report that writes a report of the API for each object as it comes.
func NewPolicyReport(api PolicyReportAPI, o output.Options) *PolicyReport {
	return &PolicyReport{api: api, out: o.Out}
}

// PolicyReport is the reports.
type PolicyReport struct {
	api      PolicyReportAPI
	out      io.Writer
	written  bool
	problems []Finding
}

// Add writes the report of an object that a rule matched.
func (p *PolicyReport) Add(object *Object) error {
	if len(object.Findings) == 0 {
		return nil
	}
	if err := p.report(nameOf(object), object.Key, object.Findings); err != nil {
		return fmt.Errorf("%s: %w", object.Name, err)
	}
	return nil
}

// nameOf returns the name of an object's report: unique to the object and this program, and the same in each
// run.
func nameOf(o *Object) string {
	sum := sha256.Sum256([]byte(o.ID))
	return source + "-" + hex.EncodeToString(sum[:8])
}

// Problem adds a result to the report of problems, up to its limit.
func (p *PolicyReport) Problem(problem Problem) error {
	if len(p.problems) == maxReportedProblems {
		return nil
	}
	p.problems = append(p.problems, Finding{
		Rule: engine.RuleRef{Policy: problem.Where, Origin: problem.Origin}, Verdict: Error, Message: problem.Text,
	})
	return nil
}

// Write writes the report of the problems, if there are any.
func (p *PolicyReport) Write(evaluation.Summary) error {
	if len(p.problems) > 0 {
		return p.report(source+"-problems", engine.ObjectKey{}, p.problems)
	}
	if p.written {
		return nil
	}
	_, err := io.WriteString(p.out, "# No rule matched an object.\n")
	return err
}

// report writes a report on an object, or on problems.
func (p *PolicyReport) report(name string, of engine.ObjectKey, findings []Finding) error {
	p.written = true
	kind := p.api.clusterKind
	if of.Namespace != "" {
		kind = p.api.kind
	}
	counts := map[Verdict]int{}
	for i := range findings {
		counts[findings[i].Verdict]++
	}
	var b bytes.Buffer // a report is written at once
	err := manifest.Execute(&b, map[string]any{
		"APIVersion": p.api.apiVersion, "Kind": kind, "HasSource": p.api.source, "Name": name, "Of": of,
		"Findings": findings, "Counts": counts,
		"Group": of.GroupVersionKind().GroupVersion().String(), "UID": string(of.UID),
	})
	if err == nil {
		_, err = p.out.Write(b.Bytes())
	}
	return err
}

// verdicts returns the verdicts that a report counts.
func verdicts() []Verdict {
	return []Verdict{Error, Fail, Pass, Skip, "warn"}
}

// manifest is the template of a report. A YAML library would take as long as a whole preview.
var manifest = template.Must(template.New("report").Funcs(template.FuncMap{"field": yamlField, "optional": optional, "verdicts": verdicts}).Parse( //nolint:gochecknoglobals // an immutable table
	`---
{{field 0 "apiVersion" .APIVersion}}{{field 0 "kind" .Kind}}metadata:
{{if .Of.Cluster}}  annotations:
{{field 4 "` + clusterAnnotation + `" .Of.Cluster}}{{end}}  labels:
    app.kubernetes.io/managed-by: ` + source + `
{{field 2 "name" .Name}}{{optional 2 "namespace" .Of.Namespace}}results:
{{range .Findings}}- category: Mutation
{{field 2 "message" .Message}}{{field 2 "policy" .Rule.Policy}}{{with print (optional 4 "details" .Details) (optional 4 "dialect" .Rule.Dialect) (optional 4 "origin" .Rule.Origin)
	(optional 4 "outcome" .Outcome) (optional 4 "via" .Rule.Via)}}  properties:
{{.}}{{end}}  result: {{.Verdict}}
{{optional 2 "rule" .Rule.Rule}}  scored: true
{{optional 2 "severity" .Rule.Severity}}  source: ` + source + `
{{end}}summary:
{{range $verdict := verdicts}}  {{$verdict}}: {{index $.Counts $verdict}}
{{end}}{{if .HasSource}}source: ` + source + `
{{end}}{{if .Of.Kind}}scope:
{{field 2 "apiVersion" .Group}}{{field 2 "kind" .Of.Kind}}{{field 2 "name" .Of.Name}}{{optional 2 "namespace" .Of.Namespace}}{{optional 2 "uid" .UID}}{{end}}`))

// yamlField returns a line with a field.
func yamlField(indent int, name, text string) string {
	margin := strings.Repeat(" ", indent)
	switch {
	case strings.ContainsFunc(text, unprintable):
		text = strconv.QuoteToASCII(text) // its escapes are among YAML's
	case strings.TrimSpace(text) != text && strings.Contains(text, "\n"):
		text = strconv.QuoteToASCII(text) // a block would lose the space around it
	case strings.Contains(text, "\n"):
		text = "|-\n" + margin + "  " + strings.ReplaceAll(text, "\n", "\n"+margin+"  ")
	case !plainYAML.MatchString(text) || word.MatchString(text):
		text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return margin + name + ": " + text + "\n"
}

// optional returns a field, or "" without a value.
func optional(indent int, name, text string) string {
	if text == "" {
		return ""
	}
	return yamlField(indent, name, text)
}

var (
	// plainYAML strings need no quotes, unless they are a word of YAML 1.1.
	plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	word      = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// unprintable reports whether YAML must escape a character, or it could mislead a reader.
func unprintable(r rune) bool { return r != '\n' && redact.Harmful(r) }
