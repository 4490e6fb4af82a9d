package formats_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// secret is a value of a Secret that was read before anything is printed.
const secret = "correct-horse-battery"

// hostileParts are what acts on a terminal, a CI runner or a parser.
var hostileParts = []string{
	"\x1b[2J", "\x1b]0;title\x07", "\r", "\n", "\n::error::", "##[error]", "\u202e", "\u200b", "\u2028", "\x85", "\x7f", "\x00", "\xff", "\ufeff",
	"::warning::", "<script>", "</script><script>alert(1)</script>", "<!--", "]]>", "$(touch x)", "${HOME}", "|", "\u2066", "\u061c", "\U000e0041", strings.Repeat("long ", 300), "`", "```\n", "'", "\"", "\\", "%0A", "](x)", "\t", "---\n", ": ", "- ", "a", "B", " ",
}

// hostileText returns a text that was never meant well.
func hostileText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(8) {
		b.WriteString(hostileParts[r.IntN(len(hostileParts))])
	}
	return b.String()
}

// hostileRun are the events of a run all of whose texts come from others. Names do not
// hold the Secret's value, which is not masked in them; everything else does.
func hostileRun(text string) []output.Event {
	leak := text + secret + base64.StdEncoding.EncodeToString([]byte(secret)) + text
	rule := engine.RuleRef{Dialect: text, Policy: text, Rule: text, Via: text, Origin: text + ":3"}
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: text, Kind: text}, Version: text, Namespace: text, Name: text, UID: types.UID(text)}
	state := func(value any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"data": map[string]any{text: value, "text": leak + "\n" + leak}, "list": []any{map[string]any{"name": text, "value": value}},
		}}
	}
	path := fieldpath.MakePathOrDie("data", text)
	err := errors.New(leak)
	var events []output.Event
	for i, o := range []engine.Outcome{engine.Changed, engine.Failed, engine.Denied, engine.Skipped, engine.Unsupported} {
		subject := key
		subject.Name += fmt.Sprint(i)
		c := &engine.Change{
			Subject: subject, Before: state(leak), After: state(leak + "2"),
			Impacts: []engine.Impact{{Code: engine.ImpactOwned, Text: leak, Brief: leak, Advice: leak, Owner: leak, Fields: []fieldpath.Path{path}}},
			Steps:   []engine.Step{{Rule: rule, Subject: subject, Trigger: subject, Outcome: o, NotIdempotent: leak, Warnings: []engine.Warning{engine.Warning(leak)}, Err: err}},
		}
		for _, f := range diff.Compare(c.Before.Object, c.After.Object, diff.Type{}) {
			f.Rule = rule
			c.Fields = append(c.Fields, f)
		}
		events = append(events, output.Evaluated{Change: c})
	}
	events = append(events,
		output.Problem{Err: err}, output.Problem{Err: &engine.CompileError{Origin: text + ":1", Policy: text, Rule: text, Err: err}},
		output.Summary{Summary: evaluation.Summary{Objects: 5, Changed: 5, Rules: []evaluation.RuleSummary{{Rule: rule, Outcomes: map[engine.Outcome]int{engine.Changed: 1}}}}},
	)
	takeover := request.Takeover{Manager: text, Subresource: text, Verdict: request.Contested, Fields: fieldpath.NewSet(path)}
	for _, r := range []apply.Result{
		{Outcome: apply.Applied, Takeovers: []request.Takeover{takeover}, Unverified: err, Drift: []fieldpath.Path{path}},
		{Outcome: apply.Failed, Err: &apply.ObjectError{Key: key, Err: err}, Instead: text},
		{Outcome: apply.Conflicted, Err: &apply.ObjectError{Key: key, Err: &apply.ConflictError{Takeovers: []request.Takeover{takeover}}}},
		{Outcome: apply.Applied, Status: &apply.Result{Key: key, Outcome: apply.Failed, Err: &apply.ObjectError{Key: key, Err: err}}},
	} {
		r.Key, r.Rules = key, []engine.RuleRef{rule}
		events = append(events, output.Written{Result: &r})
	}
	return append(events, output.Problem{Err: err})
}

func hostileOptions(text string, out io.Writer) output.Options {
	masker := &redact.Masker{}
	masker.Learn(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"k": secret}}})
	return output.Options{
		Out: out, Masker: masker, Expand: true,
		Context: output.Context{Context: text, Server: text, User: text, Namespace: text, Operation: text, Version: text, Time: text},
		Hint:    func(evaluation.Summary) output.Hint { return output.Hint{Note: text, Next: text, Why: text} },
	}
}

// TestHostileTexts prints hostile runs in every format: no control character
// and no value of a Secret comes out of any.
func TestHostileTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) // the same texts in every run
	texts := append([]string{strings.Join(hostileParts, "")}, hostileParts...)
	for range 6 {
		texts = append(texts, hostileText(r))
	}
	for i, text := range texts {
		for what, printed := range everyFormat(t, text, i == 0) {
			for _, color := range []string{"\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[0m"} {
				if strings.HasSuffix(what, "in color") {
					printed = strings.ReplaceAll(printed, color, "")
				}
			}
			if at := strings.IndexFunc(printed, acts); at >= 0 {
				t.Errorf("%s, %q: a control character in %q", what, text, printed[max(0, at-40):min(len(printed), at+20)])
			}
			for _, value := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				if at := strings.Index(printed, value); at >= 0 {
					t.Errorf("%s, %q: a value of a Secret in %q", what, text, printed[max(0, at-60):at])
				}
			}
		}
	}
}

// acts reports whether a character acts on a terminal, or misleads a reader. Tabs are in
// texts of several lines.
func acts(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}

// everyFormat prints a hostile run in every format of a run that writes, and of one that
// does not; explained too, in colors, if wanted.
func everyFormat(t *testing.T, text string, explained bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, writes := range []bool{false, true} {
		names, reports := formats.PreviewNames(), formats.PreviewReports()
		if writes {
			names, reports = formats.WriteNames(), formats.WriteReports()
		}
		for _, explain := range []bool{false, true} {
			if explain && !explained {
				continue
			}
			for format := range strings.SplitSeq(names, ", ") {
				if strings.HasSuffix(format, "-file=") {
					continue // the same with the template in a file
				}
				var shown, errOut bytes.Buffer
				o := hostileOptions(text, &shown)
				o.Explain, o.Writes, o.Color = explain, writes, explain
				format += map[string]string{"jsonpath=": "{.changes}", "jsonpath-as-json=": "{.changes}", "go-template=": "{{.}}", "custom-columns=": "N:.object.name,F:.fields,S:.steps"}[format]
				var p output.Printer
				var err error
				if writes {
					p, err = formats.NewWrites(format, o, &formats.Reports{}, &errOut)
				} else {
					p, err = formats.NewPreview(format, o)
				}
				if err != nil {
					t.Fatal(err)
				}
				printAll(t, p, text)
				what := fmt.Sprintf("-o %s, writes %v, explain %v in color", format, writes, explain)
				out[what], out["standard error: "+what] = shown.String(), errOut.String()
			}
		}
		for format := range strings.SplitSeq(reports, ", ") {
			file := filepath.Join(t.TempDir(), "report")
			o := hostileOptions(text, io.Discard)
			o.Writes = writes
			p, err := formats.OpenReports([]string{format + "=" + file}, formats.ReportOptions{Options: o})
			if err != nil {
				t.Fatal(err)
			}
			printAll(t, p, text)
			written, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out[fmt.Sprintf("--report %s, writes %v", format, writes)] = string(written) + island(t, written)
		}
	}
	return out
}

func printAll(t *testing.T, p output.Printer, text string) {
	t.Helper()
	for _, e := range hostileRun(text) {
		if err := p.Print(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
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
