package formats_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

// secret is a value of a Secret.
const secret = "correct-horse-battery"

// The values of a Secret are masked in each format.
func TestSecretsOfEventsAreMasked(t *testing.T) {
	object := func(kind, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a", "namespace": "shop"}, "data": map[string]any{"k": value},
		}}
	}
	of := func(before, after *unstructured.Unstructured) engine.Change {
		c := engine.Change{Subject: engine.KeyOf(after), Before: before, After: after}
		for _, f := range diff.Compare(before.Object, after.Object, diff.Type{}) {
			f.Rule = ruleR
			c.Fields = append(c.Fields, f)
		}
		return c
	}
	secretChange := of(object("Secret", "b2xk"), object("Secret", base64.StdEncoding.EncodeToString([]byte(secret))))
	result := func(c engine.Change) output.Event {
		return output.Written{Result: &apply.Result{
			Key: c.Subject, Outcome: apply.Failed, Rules: []engine.RuleRef{ruleR}, Before: c.Before, After: c.After,
			Err: &apply.ObjectError{Key: c.Subject, Err: errors.New("no")},
		}}
	}
	for format := range strings.SplitSeq(formats.PreviewNames(), ", ") {
		if strings.HasSuffix(format, "=") {
			continue // the report, as in JSON
		}
		var out bytes.Buffer
		show(t, newPrinter(t, format, output.Options{Out: &out}), output.Evaluated{Change: &secretChange}, output.Summary{})
		showsNoSecret(t, "-o "+format, out.String())
	}
	for format := range strings.SplitSeq(formats.WriteNames(), ", ") {
		var out bytes.Buffer
		p, err := formats.NewWrites(format, output.Options{Out: &out, Writes: true}, &formats.Reports{}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		show(t, p, result(secretChange), written("b", apply.Applied))
		showsNoSecret(t, "a write, -o "+format, out.String())
	}
	for format := range strings.SplitSeq(formats.PreviewReports(), ", ") {
		file := filepath.Join(t.TempDir(), "report")
		r, err := formats.OpenReports([]string{format + "=" + file}, formats.ReportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		show(t, r, output.Evaluated{Change: &secretChange}, output.Summary{})
		showsNoSecret(t, "--report "+format, text(t, file)+island(t, []byte(text(t, file))))
	}
	for format := range strings.SplitSeq(formats.WriteReports(), ", ") {
		file := filepath.Join(t.TempDir(), "report")
		r := open(t, formats.ReportOptions{}, format+"="+file)
		show(t, r, result(secretChange))
		showsNoSecret(t, "a write, --report "+format, text(t, file))
	}
}

func show(t *testing.T, p output.Printer, events ...output.Event) {
	t.Helper()
	for _, e := range events {
		if err := p.Print(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func showsNoSecret(t *testing.T, what, printed string) {
	t.Helper()
	if printed == "" || strings.Contains(printed, secret) || strings.Contains(printed, base64.StdEncoding.EncodeToString([]byte(secret))) {
		t.Errorf("%s: nothing, or the value of a Secret, in %q", what, printed)
	}
}
