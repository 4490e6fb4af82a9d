package sarif

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

const schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// The bounds. GitHub's code scanning takes no file with more results in a run.
const (
	maxResults       = 25_000
	maxNotifications = 1_000
)

// New returns a report that writes each result as it comes.
func New(o output.Options) *Report {
	return &Report{out: o.Out, version: redact.EscapeLine(o.Context.Version), rules: map[string]int{}}
}

// Report is the report.
type Report struct {
	out     io.Writer
	version string
	begun   bool

	descriptors   []descriptor
	rules         map[string]int // the place of each in descriptors, by its ID
	results       int
	leftOut       int
	notifications []notification
	unlisted      int  // notifications that are too many
	failed        bool // something could not be evaluated
}

// Add writes what the rules would change on an object.
func (p *Report) Add(object *report.Object) error {
	for i := range object.Findings {
		f := &object.Findings[i]
		switch {
		case f.Outcome == string(engine.Denied) || f.Verdict == report.Fail:
			if err := p.result(object, f); err != nil {
				return fmt.Errorf("%s: %w", object.Name, err)
			}
		case f.Verdict == report.Error:
			p.notEvaluated(object, f)
		}
	}
	return nil
}

// rule is the ID of a rule and its place among the descriptors.
func (p *Report) rule(r engine.RuleRef) (string, int) {
	id := strings.Trim(r.Dialect+"/"+r.String(), "/")
	if r.Via != "" {
		id += " via " + r.Via
	}
	at, ok := p.rules[id]
	if !ok {
		at = len(p.descriptors)
		p.rules[id] = at
		p.descriptors = append(p.descriptors, descriptor{
			ID: id, Short: message{"Mutation policy " + plain(wording.Rule(r))},
			Help: message{"A live object is not as this rule of a mutation policy would make it. Look at the change with kubectl mutate preview, and make it with kubectl mutate apply-existing."},
			Properties: &descriptorProperties{
				Dialect: r.Dialect, Origin: r.Origin, Severity: r.Severity, Tags: []string{"kubernetes", "mutation"},
			},
		})
	}
	return id, at
}

func (p *Report) result(object *report.Object, f *report.Finding) error {
	id, at := p.rule(f.Rule)
	if p.results == maxResults {
		p.leftOut++
		return nil
	}
	r := result{
		RuleID: id, RuleIndex: at, Level: "warning",
		Message:   message{plain(object.Name + ": " + f.Message)},
		Locations: []location{locationOf(object, f.Place)},
		// Results of one rule have one line; code scanning distinguishes them by this.
		PartialFingerprints: map[string]string{"primaryLocationLineHash": fingerprint(id, object.Key)},
		Properties:          &resultProperties{Outcome: f.Outcome, Fields: f.Fields, Notes: f.Notes, Warnings: f.Warnings},
	}
	if f.Verdict == report.Error {
		r.Level, p.failed = "error", true
	}
	before := ",\n"
	if p.results == 0 {
		before = "\n"
	}
	p.results++
	return p.write(before, r)
}

func (p *Report) notEvaluated(object *report.Object, f *report.Finding) {
	id, at := p.rule(f.Rule)
	p.notify(notification{
		Level: "error", Message: message{plain(f.Name + " on " + object.Name + " " + f.Message)},
		Locations: []location{locationOf(object, f.Place)},
		Rule:      &descriptorIndex{ID: id, Index: at},
	})
}

func (p *Report) notify(n notification) {
	p.failed = true
	if len(p.notifications) == maxNotifications {
		p.unlisted++
		return
	}
	p.notifications = append(p.notifications, n)
}

// Problem adds a notification.
func (p *Report) Problem(problem report.Problem) error {
	n := notification{Level: "error", Message: message{plain(problem.Text)}}
	if physical := physicalOf(problem.Place); physical != nil {
		n.Locations = []location{{Physical: physical}}
	}
	p.notify(n)
	return nil
}

// Write ends the log with the rules, and what could not be evaluated.
func (p *Report) Write(s evaluation.Summary) error {
	for i := range s.Rules {
		p.rule(s.Rules[i].Rule)
	}
	p.bounds()
	if err := p.begin(); err != nil {
		return err
	}
	if p.descriptors == nil {
		p.descriptors = []descriptor{}
	}
	for _, part := range []struct {
		name  string
		value any
	}{
		{"tool", tool{driver{Name: "kubectl-mutate", Version: p.version, Rules: p.descriptors}}},
		{"invocations", []invocation{{ExecutionSuccessful: !p.failed, Notifications: p.notifications}}},
		{"columnKind", "utf16CodeUnits"},
		{"properties", runProperties{Objects: s.Objects, Changed: s.Changed, Incomplete: s.Incomplete, Results: p.results, LeftOut: p.leftOut}},
	} {
		before := ",\n\"" + part.name + "\": "
		if part.name == "tool" {
			before = "\n]" + before
		}
		if err := p.write(before, part.value); err != nil {
			return err
		}
	}
	_, err := io.WriteString(p.out, "\n}]}\n")
	return err
}

// bounds adds notifications of the bounds that were met.
func (p *Report) bounds() {
	if p.leftOut > 0 {
		p.warn(fmt.Sprintf("%d results are left out: there are no more than %d in a run", p.leftOut, maxResults))
	}
	if p.unlisted > 0 {
		p.warn(fmt.Sprintf("%d more could not be evaluated than are listed here", p.unlisted))
	}
}

func (p *Report) warn(text string) {
	p.notifications = append(p.notifications, notification{Level: "warning", Message: message{text}})
}

func (p *Report) begin() error {
	if p.begun {
		return nil
	}
	p.begun = true
	_, err := io.WriteString(p.out, "{\"$schema\": \""+schema+"\", \"version\": \"2.1.0\", \"runs\": [{\n\"results\": [")
	return err
}

func (p *Report) write(before string, v any) error {
	if err := p.begin(); err != nil {
		return err
	}
	text, err := structured.MarshalLine(v)
	if err != nil {
		return fmt.Errorf("writing SARIF: %w", err)
	}
	_, err = io.WriteString(p.out, before+strings.TrimSuffix(text, "\n"))
	return err
}

// plain breaks what SARIF takes for a link.
func plain(s string) string { return strings.ReplaceAll(s, "](", "] (") }

// locationOf is the line of the policy, where it is known, and the object.
func locationOf(object *report.Object, place report.Place) location {
	return location{Physical: physicalOf(place), Logical: []logicalLocation{{
		Name: object.Key.Name, FullyQualifiedName: qualified(object.Key), Kind: "resource",
	}}}
}

// qualified is an object as "namespace/kind/name", the kind with its group; on one cluster of several, behind its
// name.
func qualified(k engine.ObjectKey) string {
	parts := []string{k.GroupKind.String(), k.Name}
	if k.Subresource != "" {
		parts = append(parts, k.Subresource)
	}
	if k.Namespace != "" {
		parts = append([]string{k.Namespace}, parts...)
	}
	if k.Cluster != "" {
		parts = append([]string{k.Cluster}, parts...)
	}
	return strings.Join(parts, "/")
}

func physicalOf(place report.Place) *physicalLocation {
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
	return &physicalLocation{Artifact: artifactLocation{u.String()}, Region: region{place.Line}}
}

// fingerprint identifies a rule's result on one object, however often the file of the
// policy is edited.
func fingerprint(rule string, k engine.ObjectKey) string {
	sum := sha256.Sum256([]byte(rule + "\x00" + qualified(k)))
	return hex.EncodeToString(sum[:16])
}
