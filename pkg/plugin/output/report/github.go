// This file writes a run for GitHub Actions: annotations as workflow commands, and the rest as the summary
// of the step.
//
// The runner shows at most ten annotations of a kind for a step. So there is one for each rule, however many
// objects it would change, at the manifest of the first of them; the last one stands for all that are too
// many.

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The limits of the annotations.
const (
	maxAnnotations    = 10
	maxGitHubProblems = maxAnnotations
)

// GitHub collects annotations by rule and problem, and writes them at its end: in a run that writes an error
// for each rule some of whose changes failed, and a warning for each rule some of whose objects were left to
// their managers.
type GitHub struct {
	out            io.Writer
	writes, tests  bool
	failed, warned string  // the words before the number of failed and of annotated objects
	annotated      Verdict // of the latter

	objects  int
	rules    []*githubRule // in the order of arrival
	index    map[engine.RuleRef]*githubRule
	problems []Problem
	leftOut  int
}

// NewGitHub returns a report without annotations.
func NewGitHub(o output.Options) *GitHub {
	r := &GitHub{
		out: o.Out, writes: o.Writes, tests: o.Tests, index: map[engine.RuleRef]*githubRule{},
		failed: "failed, denied or not supported on", warned: "would change", annotated: Fail,
	}
	if o.Writes {
		r.failed, r.warned, r.annotated = "could not change", "left alone", Skip
	}
	return r
}

// Add counts an object for the rules that would change it, or changed it.
func (r *GitHub) Add(object *Object) error {
	r.objects++
	for i := range object.Findings {
		f := &object.Findings[i]
		switch f.Verdict {
		case Error, Fail:
			if r.tests { // each at its own line
				text := strings.TrimSuffix(f.Message+"\n"+f.Details(), "\n")
				_ = r.Problem(Problem{Where: f.Name + " on " + object.Name, Text: text, Place: object.Place}) // never fails
				continue
			}
		case Pass, Skip:
		}
		switch f.Verdict {
		case Error:
			found := r.rule(f)
			if found.failed.Count == 0 {
				found.reason, found.failedAt = f.Message, cmp.Or(object.Place, f.Place)
			}
			found.failed.Add(object.Key)
		case r.annotated:
			found := r.rule(f)
			if found.warned.Count == 0 {
				found.warnedAt = cmp.Or(object.Place, f.Place)
			}
			found.warned.Add(object.Key)
		case Pass, Fail, Skip:
		}
	}
	return nil
}

// Problem adds an annotation.
func (r *GitHub) Problem(p Problem) error {
	if len(r.problems) < maxGitHubProblems {
		r.problems = append(r.problems, p)
	} else {
		r.leftOut++
	}
	return nil
}

// Write writes the annotations, errors first. The last one sums up those that are too many.
func (r *GitHub) Write(s evaluation.Summary) error {
	all := r.all()
	if text := wording.SetBack(s.SetBack); text != "" {
		all = append(all, annotation{level: "warning", title: "kubectl mutate", text: text})
	}
	shown := all
	if len(all)+r.leftOut > maxAnnotations {
		counts := wording.Counts(s)
		if r.writes {
			counts = wording.Plural(r.objects, "object") + " to write."
		}
		if r.tests {
			counts = "There are " + wording.Plural(r.objects, "result") + "."
		}
		shown = append(slices.Clone(all[:maxAnnotations-1]), annotation{
			level: all[maxAnnotations-1].level, title: "kubectl mutate",
			text: fmt.Sprintf("%d more annotations are left out. %s", len(all)+r.leftOut-maxAnnotations+1, counts),
		})
	}
	for _, at := range shown {
		if _, err := io.WriteString(r.out, at.command()); err != nil {
			return err
		}
	}
	return nil
}

// githubRule collects the annotation of a rule.
type githubRule struct {
	name               string
	place              Place          // of the policy
	origin             string         // the same, escaped
	warned, failed     wording.Reason // their objects
	warnedAt, failedAt Place          // the manifest of the first object, or the policy
	reason             string         // of the first failure
}

// policy names the place of the policy, unless the annotation is there.
func (r *githubRule) policy(at Place) string {
	if r.place.Path == "" || r.place == at {
		return ""
	}
	return " (policy: " + r.origin + ")"
}

func (r *GitHub) rule(f *Finding) *githubRule {
	rule := f.Rule.WithoutParameter()
	found := r.index[rule]
	if found == nil {
		found = &githubRule{name: wording.Rule(rule), place: f.Place, origin: rule.Origin}
		r.index[rule] = found
		r.rules = append(r.rules, found)
	}
	return found
}

// all returns the annotations, the most important first.
func (r *GitHub) all() []annotation {
	var out []annotation
	for _, problem := range r.problems {
		out = append(out, annotation{
			level: "error", title: problem.Where, text: problem.Text,
			place: problem.Place,
		})
	}
	for _, at := range r.rules {
		if at.failed.Count > 0 {
			out = append(out, annotation{
				level: "error", title: at.name, place: at.failedAt,
				text: fmt.Sprintf("%s %s. The first %s%s", r.failed, at.failed.Objects(), at.reason,
					at.policy(at.failedAt)),
			})
		}
	}
	slices.SortStableFunc(r.rules, func(a, b *githubRule) int { return b.warned.Count - a.warned.Count })
	for _, at := range r.rules {
		if at.warned.Count > 0 {
			out = append(out, annotation{level: "warning", title: at.name, place: at.warnedAt, text: r.warned + " " +
				at.warned.Objects() + at.policy(at.warnedAt)})
		}
	}
	return out
}

// annotation is a message at a line of a file, or without a place.
type annotation struct {
	level, title, text string
	place              Place
}

// command returns the annotation as a workflow command.
func (a *annotation) command() string {
	var b strings.Builder
	b.WriteString("::" + a.level + " ")
	if a.place.Path != "" {
		fmt.Fprintf(&b, "file=%s,line=%d,", property(redact.EscapeLine(a.place.Path)), a.place.Line)
	}
	return b.String() + "title=" + property(a.title) + "::" + data(a.text) + "\n"
}

// The characters that the runner decodes (ActionCommand.cs of actions/runner).
var (
	dataEscaper     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")                         //nolint:gochecknoglobals // an immutable table
	propertyEscaper = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C") //nolint:gochecknoglobals // an immutable table
)

func data(s string) string { return dataEscaper.Replace(s) }

func property(s string) string { return propertyEscaper.Replace(s) }
