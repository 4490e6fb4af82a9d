// This file writes a run as SARIF 2.1.0: a result for each rule that would change or that denies an object.
//
// A rule that could not be evaluated is a notification, not a result. Objects that are as the policies want
// them are only counted: code scanning shows every result as something to fix.

package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// The limits. GitHub's code scanning refuses a file with more results in a run.
const (
	maxResults       = 25_000
	maxNotifications = 1_000
)

// NewSARIF returns a report that is written at its end.
func NewSARIF(o output.Options) *SARIF {
	return &SARIF{
		out: o.Out, version: redact.EscapeLine(o.Context.Version), tests: o.Tests,
		rules: map[string]int{},
	}
}

// object returns a part of a SARIF log, named after section 3 of the standard, of names and values in turn.
func object(fields ...any) structured.Object {
	var out structured.Object
	for i := 0; i < len(fields); i += 2 {
		out = out.Add(fields[i].(string), fields[i+1])
	}
	return out
}

func message(text string) structured.Object { return object("text", text) }

// SARIF is the report.
type SARIF struct {
	out     io.Writer
	version string
	tests   bool

	descriptors   []structured.Object
	rules         map[string]int // index of each in descriptors, by its ID
	results       []string
	leftOut       int
	notifications []structured.Object
	unlisted      int  // notifications beyond the limit
	failed        bool // something could not be evaluated
}

// Add adds the results of an object.
func (p *SARIF) Add(about *Object) error {
	for i := range about.Findings {
		f := &about.Findings[i]
		switch {
		case f.Outcome == string(engine.Denied) || f.Verdict == Fail:
			if err := p.result(about, f); err != nil {
				return fmt.Errorf("%s: %w", about.Name, err)
			}
		case f.Verdict == Error:
			id, at := p.rule(f.Rule)
			p.notify(object(
				"level", "error", "message", message(plainSARIF(f.Name+" on "+about.Name+" "+f.Message)),
				"locations", []structured.Object{locationOf(about, f.Place)}, "associatedRule",
				object("id", id, "index", at),
			))
		}
	}
	return nil
}

// rule returns the ID of a rule and its index among the descriptors.
func (p *SARIF) rule(r engine.RuleRef) (string, int) {
	id := strings.Trim(r.Dialect+"/"+r.String(), "/")
	if r.Via != "" {
		id += " via " + r.Via
	}
	at, ok := p.rules[id]
	if !ok {
		at = len(p.descriptors)
		p.rules[id] = at
		properties := object("dialect", r.Dialect).With("origin", r.Origin).With("severity", r.Severity)
		what, help := "Mutation policy ", "A live object is not as this rule of a mutation policy would make it. Look at the change with kubectl mutate preview, and make it with kubectl mutate apply-existing."
		if p.tests {
			what, help = "Result of a ", "A rule of a mutation policy does not do what its test wants. Run the test with kubectl mutate test, and correct the rule or what the test wants."
		}
		p.descriptors = append(p.descriptors, object(
			"id", id,
			"shortDescription", message(what+plainSARIF(wording.Rule(r))),
			"help", message(help),
			"properties", properties.Add("tags", []string{"kubernetes", "mutation"}),
		))
	}
	return id, at
}

func (p *SARIF) result(about *Object, f *Finding) error {
	id, at := p.rule(f.Rule)
	if len(p.results) == maxResults {
		p.leftOut++
		return nil
	}
	level := "warning"
	if f.Verdict == Error {
		level, p.failed = "error", true
	}
	sum := sha256.Sum256([]byte(id + "\x00" + qualified(about.Key)))
	said := plainSARIF(about.Name + ": " + f.Message)
	policy := physical(f.Place)
	isRelated := about.Place.Path != "" && policy != nil
	if isRelated { // code scanning shows a related location where the message has a link to its id
		said += " (the [policy](1))"
	}
	r := object(
		"ruleId", id, "ruleIndex", at, "level", level, "message", message(said),
		"locations", []structured.Object{locationOf(about, f.Place)},
		// Results may share a line; code scanning distinguishes them by this, however often the file is edited.
		"partialFingerprints", object("primaryLocationLineHash", hex.EncodeToString(sum[:16])),
		"properties", struct {
			Outcome  string   `json:"outcome"`
			Fields   []Field  `json:"fields,omitempty"`
			Notes    []string `json:"notes,omitempty"`
			Warnings []string `json:"warnings,omitempty"`
		}{f.Outcome, f.Fields, f.Notes, f.Warnings},
	)
	if isRelated {
		r = r.Add("relatedLocations", []structured.Object{policy.Add("id", 1)})
	}
	text, err := structured.MarshalLine(r)
	p.results = append(p.results, "\n"+strings.TrimSuffix(text, "\n"))
	return err
}

func (p *SARIF) notify(n structured.Object) {
	p.failed = true
	if len(p.notifications) == maxNotifications {
		p.unlisted++
		return
	}
	p.notifications = append(p.notifications, n)
}

// Problem adds a notification.
func (p *SARIF) Problem(problem Problem) error {
	n := object("level", "error", "message", message(plainSARIF(problem.Text)))
	if problem.Place.Path != "" {
		n = n.Add("locations", []structured.Object{physical(problem.Place)})
	}
	p.notify(n)
	return nil
}

// Write ends the log with the rules and notifications.
func (p *SARIF) Write(s evaluation.Summary) error {
	for i := range s.Rules {
		p.rule(s.Rules[i].Rule)
	}
	warn := func(n int, format string, args ...any) {
		if n > 0 {
			p.notifications = append(p.notifications,
				object("level", "warning", "message", message(fmt.Sprintf(format, args...))))
		}
	}
	warn(p.leftOut, "%d results are left out: there are no more than %d in a run", p.leftOut, maxResults)
	warn(p.unlisted, "%d more could not be evaluated than are listed here", p.unlisted)
	if p.descriptors == nil {
		p.descriptors = []structured.Object{}
	}
	invocation := object("executionSuccessful", !p.failed)
	if len(p.notifications) > 0 {
		invocation = invocation.Add("toolExecutionNotifications", p.notifications)
	}
	driver := object("name", "kubectl-mutate").With("version", p.version).Add("rules", p.descriptors)
	text := `{"$schema": "` + sarifSchema + `", "version": "2.1.0", "runs": [{` + "\n\"results\": [" +
		strings.Join(p.results, ",") + "\n]"
	for _, part := range object(
		"tool", object("driver", driver),
		"invocations", []structured.Object{invocation},
		"columnKind", "utf16CodeUnits",
		"properties", object("objects", s.Objects, "changed", s.Changed, "incomplete", s.Incomplete, "results",
			len(p.results), "resultsLeftOut", p.leftOut),
	) {
		value, err := structured.MarshalLine(part.Value)
		if err != nil {
			return fmt.Errorf("writing SARIF: %w", err)
		}
		text += ",\n\"" + part.Name + "\": " + strings.TrimSuffix(value, "\n")
	}
	_, err := io.WriteString(p.out, text+"\n}]}\n")
	return err
}

// plainSARIF breaks what SARIF would read as a link.
func plainSARIF(s string) string { return strings.ReplaceAll(s, "](", "] (") }

// locationOf returns the object and the line of its manifest, or of the policy for an object of a cluster.
func locationOf(about *Object, policy Place) structured.Object {
	logical := object("name", about.Key.Name, "fullyQualifiedName", qualified(about.Key), "kind", "resource")
	return physical(cmp.Or(about.Place, policy)).Add("logicalLocations", []structured.Object{logical})
}

// qualified returns "namespace/kind/name", the kind with its group, after the name of the cluster if there
// are several.
func qualified(k engine.ObjectKey) string {
	parts := []string{k.Cluster, k.Namespace, k.GroupKind.String(), k.Name, k.Subresource}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}

// physical returns the location of a place, nil if it is empty.
func physical(place Place) structured.Object {
	if place.Path == "" {
		return nil
	}
	u := url.URL{Path: place.Path}
	switch {
	case path.IsAbs(place.Path):
		u.Scheme = "file"
	case strings.HasPrefix(place.Path[min(1, len(place.Path)):], ":/"): // a drive
		u.Scheme, u.Path = "file", "/"+place.Path
	}
	return object("physicalLocation",
		object("artifactLocation", object("uri", u.String()), "region", object("startLine", place.Line)))
}
