package formats_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// places are where a string of others stands in a run.
var places = []string{
	"group", "version", "kind", "namespace", "name", "subresource", "uid", "cluster", "trigger", "object's origin",
	"policy", "rule", "binding", "policy's origin",
	"label", "label's value", "key", "value", "hidden", "list key", "list value",
	"reason", "warning", "not idempotent", "impact", "impact in brief", "advice", "owner",
	"problem", "broken policy", "broken rule", "broken field",
	"field manager", "takeover's subresource", "instead", "server's error", "why not verified",
	"context", "server", "user", "own namespace", "operation", "program's version", "time", "note", "next command", "why command",
}

// told is what stands at each place: a word of its own, or a string.
type told func(place string) string

// plain tells the words.
func plain(place string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, place)
}

// everywhere tells a string at all places, and only at one.
func everywhere(text string) told { return func(string) string { return text } }

func only(at, text string) told {
	return func(place string) string {
		if place == at {
			return text
		}
		return plain(place)
	}
}

// hostileRun are the events of a run all of whose strings come from others.
func hostileRun(at told) []output.Event {
	failed := func(place string) error { return errors.New(at(place)) }
	rule := engine.RuleRef{Dialect: "kyverno", Policy: at("policy"), Rule: at("rule"), Via: at("binding"), Origin: at("policy's origin") + ":3", Severity: "high"}
	key := engine.ObjectKey{
		GroupKind: schema.GroupKind{Group: at("group"), Kind: at("kind")}, Version: at("version"), Namespace: at("namespace"), Name: at("name"),
		Subresource: at("subresource"), UID: types.UID(at("uid")), Cluster: at("cluster"),
	}
	trigger := key
	trigger.Name = at("trigger")
	state := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": key.GroupVersionKind().GroupVersion().String(), "kind": at("kind"),
			"metadata": map[string]any{"name": at("name"), "labels": map[string]any{at("label"): at("label's value")}},
			"data":     map[string]any{at("key"): at("hidden") + value, "text": at("value") + "\n" + at("value")},
			"list":     []any{map[string]any{"name": at("list key"), "value": at("value") + value}, at("list value")},
		}}
	}
	path := fieldpath.MakePathOrDie("data", at("key"))
	events := []output.Event{output.Fleet{Clusters: []output.Cluster{{Name: at("cluster"), Server: at("server"), Problems: 1, Problem: failed("problem").Error()}}}}
	for i, o := range []engine.Outcome{engine.Changed, engine.Failed, engine.Denied, engine.Skipped, engine.Unsupported} {
		subject := key
		subject.Name += fmt.Sprint(i)
		if o == engine.Denied {
			subject.Of = engine.Maker{GroupKind: key.GroupKind, Version: key.Version, Name: at("workload"), Template: at("template")}
		}
		c := &engine.Change{
			Subject: subject, Before: state("1"), After: state("2"),
			Target:  engine.Target{Origin: at("object's origin")},
			Impacts: []engine.Impact{{Code: engine.ImpactOwned, Text: at("impact"), Brief: at("impact in brief"), Advice: at("advice"), Owner: at("owner"), Source: at("source"), Fields: []fieldpath.Path{path}, Pods: 1}},
			Asked:   []engine.RuleRef{rule, {Policy: "other"}},
			Steps: []engine.Step{{
				Rule: rule, TriggeredBy: &trigger, TriggerChangedBy: []engine.RuleRef{rule}, Outcome: o, NotIdempotent: at("not idempotent"), AsCreated: true, Fields: []engine.FieldChange{{Path: path}},
				Warnings: []engine.Warning{engine.Warning(at("warning"))}, Err: failed("reason"),
			}},
		}
		for _, f := range diff.Compare(c.Before.Object, c.After.Object, diff.Type{}) {
			f.Writer = &rule
			c.Fields = append(c.Fields, f)
		}
		events = append(events, output.Evaluated{Change: c})
	}
	events = append(events,
		output.Problem{Err: failed("problem")},
		output.Problem{Err: &engine.CompileError{Origin: at("policy's origin") + ":1", Policy: at("broken policy"), Rule: at("broken rule"), Field: at("broken field"), Err: failed("problem")}},
		output.Summary{Summary: evaluation.Summary{
			Objects: 5, SetBack: 1, Managed: []evaluation.Managed{{By: at("by"), Source: at("source"), Objects: 2}}, Ignored: 1, Changed: 5, Created: 1, Expanded: &evaluation.Expanded{Objects: 1, Changed: 1, Fields: 1}, Rules: []evaluation.RuleSummary{{Rule: rule, Outcomes: map[engine.Outcome]int{engine.Changed: 1}}},
			Canary: &evaluation.Canary{Percent: 10, LeftOut: 9, MaxObjects: 1, More: true}, Outdated: []string{at("name")}, Overlay: map[string]int{"ConfigMap": 2},
		}},
	)
	takeover := request.Takeover{Manager: at("field manager"), Subresource: at("takeover's subresource"), Verdict: request.Contested, Fields: fieldpath.NewSet(path)}
	shown := takeover
	shown.Verdict = request.Shown
	refused := &write.ObjectError{Key: key, Err: failed("server's error")}
	results := []write.Result{
		{Outcome: write.Applied, Method: request.JSONPatch, Reason: request.Reason{Kind: request.Removal}, Retries: 1, Takeovers: []request.Takeover{takeover, shown}, Unverified: failed("why not verified"), Drift: []fieldpath.Path{path}},
		{Outcome: write.Failed, Err: refused, Instead: at("instead")},
		{
			Outcome: write.Conflicted, Err: &write.ObjectError{Key: key, Err: &write.ConflictError{Takeovers: []request.Takeover{takeover}}},
			Autoscaled: []engine.Impact{{Owner: at("owner"), Fields: []fieldpath.Path{path}}},
		},
		{Outcome: write.Applied, Status: &write.Result{Key: key, Outcome: write.Failed, Err: refused}},
	}
	for _, o := range []write.Outcome{
		write.Planned, write.Unchanged, write.ServerKeepsValue, write.Deleted, write.Replaced, write.Terminating, write.Managed, write.Declined, write.Drifted, write.NotTried,
	} {
		results = append(results, write.Result{Outcome: o})
	}
	touched := diff.Between(state("1"), state("2"), diff.Type{})
	for _, r := range results {
		r.Touched = touched
		r.Key, r.Rules = key, []engine.RuleRef{rule}
		events = append(events, output.Written{Result: &r})
	}
	return append(events, output.Problem{Err: failed("problem")})
}

// hostileComparison are the events of a comparison all of whose strings come from others.
func hostileComparison(at told) []output.Event {
	var changes [2]*engine.Change
	var rules [2][]compare.Exercise
	var problem, fleet output.Event
	sides := 0
	for _, e := range hostileRun(at) {
		switch e := e.(type) {
		case output.Evaluated:
			if sides < len(changes) {
				changes[sides] = e.Change
				changes[sides].Subject = changes[0].Subject
				sides++
			}
		case output.Problem:
			problem = e
		case output.Fleet:
			fleet = e
		}
	}
	result := &compare.Result{
		Subject: changes[compare.Old].Subject, Target: changes[compare.Old].Target, Verdict: compare.Differs,
		Operations: []engine.Operation{engine.OperationUpdate}, Changes: changes,
		Variant: &compare.Variant{
			Request: engine.Request{User: engine.UserInfo{Username: at("kind"), Groups: []string{at("kind")}}, DryRun: true},
			Count:   2, Kinds: []string{at("kind")}, Missing: []string{at("kind")}, Object: changes[compare.Old].Before, Beside: []*unstructured.Unstructured{changes[compare.New].After},
		},
	}
	for _, f := range changes[compare.Old].Fields {
		result.Fields = append(result.Fields, compare.Field{FieldChange: f, Rules: [2]engine.RuleRef{f.Rule(), f.Rule()}})
	}
	made := *result
	made.Subject.Of = engine.Maker{GroupKind: made.Subject.GroupKind, Name: made.Subject.Name, Template: made.Subject.Name}
	for side := range rules {
		reason := changes[side].Steps[0].Err.Error()
		rules[side] = []compare.Exercise{{
			Variants: 1, Rule: changes[side].Steps[0].Rule, Outcomes: map[engine.Outcome]int{engine.Skipped: 1}, HeldBack: map[string]int{reason: 1}, Missing: reason,
		}}
	}
	return []output.Event{
		fleet,
		output.Compared{Result: result, Difference: result.Difference()},
		output.Compared{Result: &made, Difference: made.Difference()},
		problem,
		output.Comparison{Summary: compare.Summary{
			Conclusion: compare.SomeDiffer,
			Counts:     compare.Counts{Objects: 1, Changed: 1, Verdicts: map[compare.Verdict]int{compare.Differs: 1}, Reordered: 1, Failed: 1, Expanded: 1},
			Operations: result.Operations, Rules: rules, Variants: compare.VariantSummary{Compared: 2, Differ: 1, Limit: 9}, Problems: 1,
		}},
	}
}

func hostileOptions(at told, out io.Writer) output.Options {
	return output.Options{
		Out: out, ListAll: true, DryRun: "server",
		Context: output.Context{
			Context: at("context"), Server: at("server"), User: at("user"), Namespace: at("own namespace") + "-own", Operation: at("operation"), Version: at("program's version"), Time: at("time"),
		},
		Hint: func(evaluation.Summary) output.Hint {
			return output.Hint{Note: at("note"), Next: at("next command"), Why: at("why command")}
		},
	}
}

// shownFormat is a format of a run, and how it is asked for.
type shownFormat struct {
	name   string // of -o, or of --report
	report bool
	output.Options
}

func (f *shownFormat) String() string {
	return fmt.Sprintf("%s, report %v, writes %v, compares %v, explain %v, by %s, color %v", f.name, f.report, f.Writes, f.Compares, f.Explain, f.GroupBy, f.Color)
}

// shownFormats are all formats, those for people in all their views.
func shownFormats() []shownFormat {
	var out []shownFormat
	for _, writes := range []bool{false, true} {
		names, reports := formats.Names(output.Options{}), formats.ReportNames(output.Options{})
		if writes {
			names, reports = formats.Names(output.Options{Writes: true}), formats.ReportNames(output.Options{Writes: true})
		}
		for name := range strings.SplitSeq(names, ", ") {
			if strings.HasSuffix(name, "-file=") {
				continue // the same with the template in a file
			}
			people := formats.ForPeople(name)
			name += map[string]string{"jsonpath=": "{.changes}", "jsonpath-as-json=": "{.changes}", "go-template=": "{{.}}", "custom-columns=": "N:.object.name,F:.fields,S:.steps"}[name]
			out = append(out, shownFormat{name: name, Options: output.Options{Writes: writes}}, shownFormat{name: name, Options: output.Options{Writes: writes, Explain: true, Color: true}})
			if people && !writes {
				out = append(out, shownFormat{name: name, Options: output.Options{GroupBy: output.ByPolicy}})
			}
		}
		for name := range strings.SplitSeq(reports, ", ") {
			out = append(out, shownFormat{name: name, report: true, Options: output.Options{Writes: writes}})
		}
	}
	for name := range strings.SplitSeq(formats.Names(output.Options{Compares: true}), ", ") {
		out = append(out, shownFormat{name: name, Options: output.Options{Compares: true}})
	}
	for name := range strings.SplitSeq(formats.ReportNames(output.Options{Compares: true}), ", ") {
		out = append(out, shownFormat{name: name, report: true, Options: output.Options{Compares: true}})
	}
	return out
}

// print shows a run, and returns what comes out, and what comes out beside it.
func (f *shownFormat) print(t *testing.T, at told) (shown, beside string) {
	t.Helper()
	var out, errOut bytes.Buffer
	o := hostileOptions(at, &out)
	o.Writes, o.Compares, o.Explain, o.GroupBy, o.Color = f.Writes, f.Compares, f.Explain, f.GroupBy, f.Color
	var p output.Printer
	var err error
	switch {
	case f.report:
		p, err = formats.OpenReports([]string{f.name + "=-"}, formats.ReportOptions{Options: o, ErrOut: &errOut})
	case f.Writes:
		p, err = newWrites(f.name, o, &formats.Reports{}, &errOut)
	case f.Compares:
		p, err = formats.New(f.name, o)
	default:
		p, err = formats.New(f.name, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	events := hostileRun(at)
	if f.Compares {
		events = hostileComparison(at)
	}
	for _, e := range events {
		if _, written := e.(output.Written); written && !f.Writes {
			continue
		}
		if err := p.Print(e); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	return out.String(), errOut.String() + island(t, out.Bytes())
}

// forPrograms are formats that a program reads: they hold values as they are.
var forPrograms = []string{formats.Name, formats.JSON, formats.YAML, formats.Manifests, formats.JSONPatch, "jsonpath", "go-template", "custom-columns"}

// check has what was shown read as its consumer reads it. Lines is the number of lines
// where nothing is hostile.
func (f *shownFormat) check(shown, beside string, lines int) error {
	if f.Color {
		for _, color := range []human.Color{human.Bold, human.Red, human.Green, human.Yellow, human.Cyan, "\x1b[0m"} {
			shown, beside = strings.ReplaceAll(shown, string(color), ""), strings.ReplaceAll(beside, string(color), "")
		}
	}
	errs := []error{hostile.Terminal(shown + beside)}
	if !slices.ContainsFunc(forPrograms, func(name string) bool { return strings.HasPrefix(f.name, name) }) {
		if f.name != "github" || !f.report {
			errs = append(errs, hostile.Runner(shown), hostile.Legible(shown))
		}
	}
	manifests := f.Compares && f.name == formats.Summary // of variants, whose strings may have several lines
	if got := strings.Count(shown, "\n"); !manifests && slices.Contains([]string{formats.Summary, formats.Table, formats.Wide, formats.Name, formats.JSONPatch, "github"}, f.name) && got != lines {
		errs = append(errs, fmt.Errorf("%d lines, want %d", got, lines))
	}
	switch name, _, _ := strings.Cut(f.name, "="); {
	case name == formats.Markdown:
		errs = append(errs, readMarkdown(shown))
	case name == "github":
		for line := range strings.Lines(shown) {
			if !strings.HasPrefix(line, "::error ") && !strings.HasPrefix(line, "::warning ") {
				errs = append(errs, fmt.Errorf("no command: %q", line))
			}
		}
	case name == "junit":
		errs = append(errs, xml.Unmarshal([]byte(shown), &struct{ XMLName xml.Name }{}))
	case name == "sarif", name == formats.JSON, name == formats.JSONPatch, name == formats.JSONPathAsJSON:
		errs = append(errs, readStream(json.NewDecoder(strings.NewReader(shown))))
	case name == formats.YAML, name == formats.Manifests, name == "policyreport", name == "openreports":
		errs = append(errs, readStream(yaml.NewDecoder(strings.NewReader(shown))))
	}
	return errors.Join(errs...)
}

// readStream reads all documents.
func readStream(d interface{ Decode(v any) error }) error {
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readMarkdown checks that what comes from clusters and policies stands in code, where nothing
// is read as Markdown or HTML.
func readMarkdown(text string) error {
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		run := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(run) >= 3:
			fence = run
		case fence != "" && line == fence:
			fence = ""
		case fence == "":
			if rest := outsideOfCode(line); strings.ContainsAny(rest, "<>[@") && !ownTag.MatchString(rest) {
				return fmt.Errorf("outside of code: %q", rest)
			}
		}
	}
	if fence != "" {
		return errors.New("a fence is not closed")
	}
	return nil
}

// ownTag is the markup of a report: its marker, and what is folded.
var ownTag = regexp.MustCompile(`^(<!-- kubectl-mutate (preview|results) -->|<details><summary>[A-Z][a-z ]+(: \d+ objects?)?</summary>|</details>)$`)

var backticks = regexp.MustCompile("`+")

// outsideOfCode is a line without its code spans, each of which ends at a run of as
// many backticks as it begins with.
func outsideOfCode(line string) string {
	var b strings.Builder
	for {
		begin := backticks.FindStringIndex(line)
		if begin == nil {
			return b.String() + line
		}
		b.WriteString(line[:begin[0]])
		fence, rest := line[begin[0]:begin[1]], line[begin[1]:]
		runs := backticks.FindAllStringIndex(rest, -1)
		end := slices.IndexFunc(runs, func(r []int) bool { return r[1]-r[0] == len(fence) })
		if end < 0 {
			return b.String() + fence + rest
		}
		line = rest[runs[end][1]:]
	}
}

// TestHostileTexts shows each hostile text at all places in every format, and names the places
// of those that get through.
func TestHostileTexts(t *testing.T) {
	tier.NotShort(t)
	for _, f := range shownFormats() {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			ordinary, _ := f.print(t, plain)
			lines := strings.Count(ordinary, "\n")
			try := func(at told) error {
				shown, beside := f.print(t, at)
				return f.check(shown, beside, lines)
			}
			texts := hostile.Texts()
			if f.Explain || f.GroupBy != "" || f.Compares || f.Writes {
				texts = []hostile.Text{{Class: "all", Text: hostile.All()}} // the escaping is that of the other views
			}
			for _, text := range texts {
				err := try(everywhere(text.Text))
				for _, place := range places {
					if err == nil {
						break
					}
					if at := try(only(place, text.Text)); at != nil {
						t.Errorf("%s %.80q as %s: %v", text.Class, text.Text, place, at)
					}
				}
				if err != nil {
					t.Errorf("%s %.80q: %v", text.Class, text.Text, err)
				}
			}
		})
	}
}

var compressed = regexp.MustCompile(`<script type="application/gzip" id="data">([^<]*)</script>`)

// island returns the data of an HTML page, and nothing of another report.
func island(t *testing.T, report []byte) string {
	t.Helper()
	match := compressed.FindSubmatch(report)
	if match == nil {
		return ""
	}
	r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(match[1])))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The values of a Secret are masked in each format.
func TestSecretsAreMasked(t *testing.T) {
	const secret = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"
	at := func(place string) string {
		if value, ok := map[string]string{"kind": "Secret", "group": "", "version": "v1", "hidden": secret}[place]; ok {
			return value
		}
		return plain(place)
	}
	for _, f := range shownFormats() {
		if shown, beside := f.print(t, at); shown == "" || strings.Contains(shown+beside, secret) {
			t.Errorf("%s: nothing, or the value of a Secret, in %q %q", &f, shown, beside)
		}
	}
}

// Each report of a run on several clusters says which cluster an object, or a problem, is on.
func TestReportsNameClusters(t *testing.T) {
	for _, f := range shownFormats() {
		if shown, beside := f.print(t, only("cluster", "prod-eu")); f.report && f.name != "github" && !strings.Contains(shown+beside, "prod-eu") {
			t.Errorf("%s names no cluster:\n%s", &f, shown)
		}
	}
}
