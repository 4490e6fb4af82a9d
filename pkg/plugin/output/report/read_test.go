package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// readers read a report as its consumers do, by the rules of the public schema that
// a report could break.
var readers = map[string]func(*testing.T, string){
	"junit": readJUnit, "sarif": readSARIF, "github": readGitHub, "markdown": readMarkdown,
	"policyreport": func(t *testing.T, s string) {
		readReports(t, s, "wgpolicyk8s.io/v1alpha2", "PolicyReport", "ClusterPolicyReport")
	},
	"openreports": func(t *testing.T, s string) {
		readReports(t, s, "openreports.io/v1alpha1", "Report", "ClusterReport")
	},
}

// junitSchema is what junit-10.xsd of Jenkins' xUnit plugin allows in each element:
// its attributes (a required one ends in !) and its children.
var junitSchema = map[string]struct{ attributes, children []string }{
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

func readJUnit(t *testing.T, text string) {
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
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attributes := checkElement(t, open, e)
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
						t.Errorf("suite %s has %s=%s, and %s of them", suite["name"], attribute, suite[attribute], want)
					}
				}
			}
		}
	}
}

func checkElement(t *testing.T, open []string, e xml.StartElement) map[string]string {
	t.Helper()
	rules, known := junitSchema[e.Name.Local]
	parent := "testsuites"
	if len(open) > 0 {
		parent = open[len(open)-1]
		if !slices.Contains(junitSchema[parent].children, e.Name.Local) {
			t.Errorf("<%s> in <%s>", e.Name.Local, parent)
		}
	} else if e.Name.Local != parent {
		t.Errorf("the document is <%s>", e.Name.Local)
	}
	if !known {
		t.Errorf("<%s>", e.Name.Local)
	}
	attributes := map[string]string{}
	for _, a := range e.Attr {
		attributes[a.Name.Local] = a.Value
		if !slices.Contains(rules.attributes, a.Name.Local) && !slices.Contains(rules.attributes, a.Name.Local+"!") {
			t.Errorf("<%s %s>", e.Name.Local, a.Name.Local)
		}
	}
	for _, a := range rules.attributes {
		if name, required := strings.CutSuffix(a, "!"); required && attributes[name] == "" {
			t.Errorf("<%s> without %s", e.Name.Local, name)
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
func readSARIF(t *testing.T, text string) {
	var log sarifLog
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || log.Runs[0].Results == nil || log.Runs[0].Tool.Driver.Rules == nil {
		t.Fatalf("no log of one run: %+v", log)
	}
	run := log.Runs[0]
	seen := map[string]bool{}
	for _, r := range run.Results {
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.Message.Text == "" || !slices.Contains([]string{"warning", "error"}, r.Level) {
			t.Errorf("result %+v", r)
		}
		if strings.Contains(r.Message.Text, "](") {
			t.Errorf("a message holds a link: %s", r.Message.Text)
		}
		if print := r.PartialFingerprints["primaryLocationLineHash"]; seen[print] || print == "" {
			t.Errorf("fingerprint %q is not this result's own", print)
		} else {
			seen[print] = true
		}
		checkLocations(t, r.Locations)
	}
	if len(run.Invocations) != 1 || run.Invocations[0].ExecutionSuccessful == nil {
		t.Fatal("not one invocation that says how it ended")
	}
	for _, n := range run.Invocations[0].ToolExecutionNotifications {
		if *run.Invocations[0].ExecutionSuccessful && n.Level == "error" {
			t.Error("successful with an error")
		}
		if n.AssociatedRule != nil && run.Tool.Driver.Rules[n.AssociatedRule.Index].ID != n.AssociatedRule.ID {
			t.Errorf("notification %+v", n)
		}
		checkLocations(t, n.Locations)
	}
}

func checkLocations(t *testing.T, locations []sarifLocation) {
	t.Helper()
	for _, l := range locations {
		if l.PhysicalLocation == nil {
			continue
		}
		if _, err := url.Parse(l.PhysicalLocation.ArtifactLocation.URI); err != nil || l.PhysicalLocation.Region.StartLine < 1 {
			t.Errorf("location %+v: %v", l.PhysicalLocation, err)
		}
	}
}

// readGitHub reads workflow commands as ActionCommand.TryParseV2 of actions/runner
// does.
func readGitHub(t *testing.T, text string) {
	lines := strings.SplitAfter(text, "\n")
	if n := len(lines) - 1; n > 10 {
		t.Errorf("%d annotations", n)
	}
	for _, line := range lines[:len(lines)-1] {
		info, _, found := strings.Cut(strings.TrimPrefix(line, "::"), "::")
		name, properties, _ := strings.Cut(info, " ")
		if !strings.HasPrefix(line, "::") || !found || (name != "error" && name != "warning") {
			t.Errorf("no command: %q", line)
			continue
		}
		for property := range strings.SplitSeq(properties, ",") {
			key, _, _ := strings.Cut(property, "=")
			if !slices.Contains([]string{"file", "line", "title"}, key) {
				t.Errorf("property %q in %q", property, line)
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
func readReports(t *testing.T, text, apiVersion, kind, clusterKind string) {
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	names := map[string]bool{}
	buffer := make([]byte, len(text)+1)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(buffer[:n])) == 0 {
			continue
		}
		if bytes.HasPrefix(buffer[:n], []byte("# ")) {
			continue
		}
		var r resource
		if err := yaml.UnmarshalStrict(buffer[:n], &r); err != nil {
			t.Fatalf("%v\n%s", err, buffer[:n])
		}
		want := clusterKind
		if r.Metadata.Namespace != "" {
			want = kind
		}
		if r.APIVersion != apiVersion || r.Kind != want || names[r.Metadata.Namespace+"/"+r.Metadata.Name] {
			t.Errorf("%s %s %s", r.APIVersion, r.Kind, r.Metadata.Name)
		}
		names[r.Metadata.Namespace+"/"+r.Metadata.Name] = true
		if (r.Source != "") != (apiVersion == "openreports.io/v1alpha1") {
			t.Errorf("source %q", r.Source)
		}
		counts := map[string]int{"pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 0}
		for _, result := range r.Results {
			if _, known := counts[result.Result]; !known || result.Policy == "" {
				t.Errorf("result %+v", result)
			}
			counts[result.Result]++
		}
		for verdict, n := range counts {
			if r.Summary[verdict] != n {
				t.Errorf("%s: %d %s in the summary, and %d", r.Metadata.Name, r.Summary[verdict], verdict, n)
			}
		}
	}
}

// readMarkdown checks that what comes from clusters and policies stands in code, where nothing
// is read as Markdown or HTML.
func readMarkdown(t *testing.T, text string) {
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
			t.Errorf("outside of code: %q", rest)
		}
	}
	if fence != "" {
		t.Error("a fence is not closed")
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
