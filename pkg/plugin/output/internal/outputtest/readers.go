package outputtest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ReadReport reads a report of a format as its consumers do, and returns an error for each
// rule of the public schema that it breaks. It knows nothing of HTML, which a browser reads.
func ReadReport(format, report string) error {
	var f faults
	switch format {
	case "junit":
		f.readJUnit(report)
	case "sarif":
		f.readSARIF(report)
	case "github":
		f.readGitHub(report)
	case "markdown":
		f.readMarkdown(report)
	case "policyreport":
		f.readReports(report, "wgpolicyk8s.io/v1alpha2", "PolicyReport", "ClusterPolicyReport")
	case "openreports":
		f.readReports(report, "openreports.io/v1alpha1", "Report", "ClusterReport")
	}
	return errors.Join(f...)
}

// faults are those of a report.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// junitSchema is what junit-10.xsd of Jenkins' xUnit plugin allows in each element:
// its attributes (a required one ends in !) and its children.
var junitSchema = map[string]struct{ attributes, children []string }{ //nolint:gochecknoglobals // an immutable table
	"testsuites": {[]string{"name", "time", "tests", "failures", "errors"}, []string{"testsuite"}},
	"testsuite": {
		[]string{"name!", "tests!", "failures!", "errors!", "skipped", "time", "timestamp", "hostname", "id", "package", "file"},
		[]string{"testsuite", "properties", "testcase", "system-out", "system-err"},
	},
	"properties": {nil, []string{"property"}},
	"property":   {[]string{"name!", "value!"}, nil},
	"testcase":   {[]string{"name!", "time", "classname", "group"}, []string{"skipped", "error", "failure", "system-out", "system-err"}},
	"skipped":    {[]string{"type", "message"}, nil},
	"error":      {[]string{"type", "message"}, nil},
	"failure":    {[]string{"type", "message"}, nil},
	"system-out": {}, "system-err": {},
}

func (f *faults) readJUnit(text string) {
	counts := map[string]int{}
	var open []string
	var suite map[string]string
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.add("%w", err)
			return
		}
		switch e := token.(type) {
		case xml.StartElement:
			attributes := f.checkElement(open, e)
			if e.Name.Local == "testsuite" {
				suite, counts = attributes, map[string]int{}
			}
			counts[e.Name.Local]++
			open = append(open, e.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
			if e.Name.Local == "testsuite" {
				for element, attribute := range map[string]string{"testcase": "tests", "failure": "failures", "error": "errors", "skipped": "skipped"} {
					if want := strconv.Itoa(counts[element]); suite[attribute] != want {
						f.add("suite %s has %s=%s, and %s of them", suite["name"], attribute, suite[attribute], want)
					}
				}
			}
		}
	}
}

func (f *faults) checkElement(open []string, e xml.StartElement) map[string]string {
	rules, known := junitSchema[e.Name.Local]
	parent := "testsuites"
	if len(open) > 0 {
		parent = open[len(open)-1]
		if !slices.Contains(junitSchema[parent].children, e.Name.Local) {
			f.add("<%s> in <%s>", e.Name.Local, parent)
		}
	} else if e.Name.Local != parent {
		f.add("the document is <%s>", e.Name.Local)
	}
	if !known {
		f.add("<%s>", e.Name.Local)
	}
	attributes := map[string]string{}
	for _, a := range e.Attr {
		attributes[a.Name.Local] = a.Value
		if !slices.Contains(rules.attributes, a.Name.Local) && !slices.Contains(rules.attributes, a.Name.Local+"!") {
			f.add("<%s %s>", e.Name.Local, a.Name.Local)
		}
	}
	for _, a := range rules.attributes {
		if name, required := strings.CutSuffix(a, "!"); required && attributes[name] == "" {
			f.add("<%s> without %s", e.Name.Local, name)
		}
	}
	return attributes
}

type sarifLocation struct {
	PhysicalLocation *struct {
		ArtifactLocation struct{ URI string }
		Region           struct{ StartLine int }
	}
	LogicalLocations []struct{ Name, FullyQualifiedName, Kind string }
}

type sarifMessage struct{ Text string }

type sarifLog struct {
	Schema  string `json:"$schema"`
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Name, Version string
				Rules         []struct {
					ID                     string
					ShortDescription, Help sarifMessage
					Properties             map[string]any
				}
			}
		}
		Results []struct {
			RuleID, Level       string
			RuleIndex           int
			Message             sarifMessage
			Locations           []sarifLocation
			PartialFingerprints map[string]string
			Properties          map[string]any
		}
		Invocations []struct {
			ExecutionSuccessful        *bool
			ToolExecutionNotifications []struct {
				Level          string
				Message        sarifMessage
				Locations      []sarifLocation
				AssociatedRule *struct {
					ID    string
					Index int
				}
			}
		}
		ColumnKind string
		Properties map[string]any
	}
}

// readSARIF checks what a schema says, and what it cannot: that indices and IDs
// agree, and that no two results are taken for one.
func (f *faults) readSARIF(text string) {
	var log sarifLog
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&log); err != nil {
		f.add("%w", err)
		return
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || log.Runs[0].Results == nil || log.Runs[0].Tool.Driver.Rules == nil {
		f.add("no log of one run: %+v", log)
		return
	}
	run := log.Runs[0]
	seen := map[string]bool{}
	for _, r := range run.Results {
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.Message.Text == "" || !slices.Contains([]string{"warning", "error"}, r.Level) {
			f.add("result %+v", r)
		}
		if strings.Contains(r.Message.Text, "](") {
			f.add("a message holds a link: %s", r.Message.Text)
		}
		if print := r.PartialFingerprints["primaryLocationLineHash"]; seen[print] || print == "" {
			f.add("fingerprint %q is not this result's own", print)
		} else {
			seen[print] = true
		}
		f.checkLocations(r.Locations)
	}
	if len(run.Invocations) != 1 || run.Invocations[0].ExecutionSuccessful == nil {
		f.add("not one invocation that says how it ended")
		return
	}
	for _, n := range run.Invocations[0].ToolExecutionNotifications {
		if *run.Invocations[0].ExecutionSuccessful && n.Level == "error" {
			f.add("successful with an error")
		}
		if n.AssociatedRule != nil && run.Tool.Driver.Rules[n.AssociatedRule.Index].ID != n.AssociatedRule.ID {
			f.add("notification %+v", n)
		}
		f.checkLocations(n.Locations)
	}
}

func (f *faults) checkLocations(locations []sarifLocation) {
	for _, l := range locations {
		if l.PhysicalLocation == nil {
			continue
		}
		if _, err := url.Parse(l.PhysicalLocation.ArtifactLocation.URI); err != nil || l.PhysicalLocation.Region.StartLine < 1 {
			f.add("location %+v: %v", l.PhysicalLocation, err)
		}
	}
}

// readGitHub reads workflow commands as ActionCommand.TryParseV2 of actions/runner
// does.
func (f *faults) readGitHub(text string) {
	lines := strings.SplitAfter(text, "\n")
	if n := len(lines) - 1; n > 10 {
		f.add("%d annotations", n)
	}
	for _, line := range lines[:len(lines)-1] {
		info, _, found := strings.Cut(strings.TrimPrefix(line, "::"), "::")
		name, properties, _ := strings.Cut(info, " ")
		if !strings.HasPrefix(line, "::") || !found || (name != "error" && name != "warning") {
			f.add("no command: %q", line)
			continue
		}
		for property := range strings.SplitSeq(properties, ",") {
			key, _, _ := strings.Cut(property, "=")
			if !slices.Contains([]string{"file", "line", "title"}, key) {
				f.add("property %q in %q", property, line)
			}
		}
	}
}

type resource struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Scope *struct{ APIVersion, Kind, Name, Namespace, UID string }
	// Source is OpenReports' alone.
	Source  string
	Summary map[string]int
	Results []struct {
		Category, Message, Policy, Rule, Result, Source string
		Scored                                          bool
		Properties                                      map[string]string
	}
}

// readReports checks what the CustomResourceDefinitions say, and that the summary
// counts the results.
func (f *faults) readReports(text, apiVersion, kind, clusterKind string) {
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	names := map[string]bool{}
	buffer := make([]byte, len(text)+1)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			f.add("%w", err)
			return
		}
		if len(bytes.TrimSpace(buffer[:n])) == 0 {
			continue
		}
		if bytes.HasPrefix(buffer[:n], []byte("# ")) {
			continue
		}
		var r resource
		if err := yaml.UnmarshalStrict(buffer[:n], &r); err != nil {
			f.add("%v\n%s", err, buffer[:n])
			return
		}
		want := clusterKind
		if r.Metadata.Namespace != "" {
			want = kind
		}
		if r.APIVersion != apiVersion || r.Kind != want || names[r.Metadata.Namespace+"/"+r.Metadata.Name] {
			f.add("%s %s %s", r.APIVersion, r.Kind, r.Metadata.Name)
		}
		names[r.Metadata.Namespace+"/"+r.Metadata.Name] = true
		if (r.Source != "") != (apiVersion == "openreports.io/v1alpha1") {
			f.add("source %q", r.Source)
		}
		counts := map[string]int{"pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 0}
		for _, result := range r.Results {
			if _, known := counts[result.Result]; !known || result.Policy == "" {
				f.add("result %+v", result)
			}
			counts[result.Result]++
		}
		for verdict, n := range counts {
			if r.Summary[verdict] != n {
				f.add("%s: %d %s in the summary, and %d", r.Metadata.Name, r.Summary[verdict], verdict, n)
			}
		}
	}
}

// readMarkdown checks that what comes from clusters and policies stands in code, where nothing
// is read as Markdown or HTML.
func (f *faults) readMarkdown(text string) {
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		run := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(run) >= 3:
			fence = run
			continue
		case fence != "" && line == fence:
			fence = ""
			continue
		case fence != "":
			continue
		}
		if rest := outsideOfCode(line); strings.ContainsAny(rest, "<>[@") && !ownTag.MatchString(rest) {
			f.add("outside of code: %q", rest)
		}
	}
	if fence != "" {
		f.add("a fence is not closed")
	}
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
