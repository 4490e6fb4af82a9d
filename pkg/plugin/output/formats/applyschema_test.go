package formats_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

// everyOutcome returns a result of every outcome.
func everyOutcome() []apply.Result {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: "shop", Name: "web"}
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	takeover := request.Takeover{Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply, Fields: fieldpath.NewSet(replicas), Verdict: request.Contested}
	silent := takeover
	silent.Verdict = request.Silent
	shown := takeover
	shown.Verdict = request.Shown
	refused := func(err error) error { return &apply.ObjectError{Key: key, Err: err} }
	rules := []engine.RuleRef{{Dialect: "kyverno", Policy: "p", Rule: "r", Origin: "p.yaml:1"}, {Dialect: "gatekeeper", Policy: "q"}}
	return []apply.Result{
		{Key: key, Outcome: apply.Applied, Method: request.Apply, Rules: rules, Takeovers: []request.Takeover{silent, shown}, Drift: []fieldpath.Path{replicas}},
		{Key: key, Outcome: apply.Applied, Status: &apply.Result{Outcome: apply.Failed, Err: refused(errors.New("no"))}},
		{Key: key, Outcome: apply.Planned, Method: request.JSONPatch, Reason: request.Reason{Kind: request.Removal, Detail: ".spec.x"}, Unverified: errors.New("a webhook")},
		{Key: key, Outcome: apply.Unchanged, Method: request.None},
		{Key: key, Outcome: apply.ServerKeepsValue, Difference: request.Difference{{Class: request.Overridden, Path: replicas}}},
		{Key: key, Outcome: apply.Deleted},
		{Key: key, Outcome: apply.Replaced},
		{Key: key, Outcome: apply.Terminating},
		{Key: key, Outcome: apply.Conflicted, Err: refused(&apply.ConflictError{Takeovers: []request.Takeover{takeover}})},
		{Key: key, Outcome: apply.Declined, Err: refused(errors.New("loses data"))},
		{Key: key, Outcome: apply.Drifted, Err: refused(errors.New("changed"))},
		{Key: key, Outcome: apply.Managed, Err: refused(errors.New("kept")), Instead: "Application shop"},
		{Key: key, Outcome: apply.NotTried},
		{Key: key, Outcome: apply.Failed, Retries: 2, Err: refused(&apply.RejectedError{Text: "immutable", Err: errors.New("422")})},
	}
}

// applyReport is the report of results.
func applyReport(t *testing.T, format string, o output.Options, some []apply.Result, more ...output.Event) []byte {
	t.Helper()
	var out bytes.Buffer
	o.Out = &out
	p, err := formats.NewWrites(format, o, &formats.Reports{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range some {
		if err := p.Print(output.Written{Result: &r}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range more {
		if err := p.Print(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestQueryOfWrites(t *testing.T) {
	some := []apply.Result{
		{Key: engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Name: "a"}, Outcome: apply.Applied},
		{Key: engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Name: "b"}, Outcome: apply.Deleted},
	}
	const query = "results[?outcome != 'applied'].object.name"
	for format, want := range map[string]string{formats.JSON: "[\n    \"b\"\n]\n", formats.YAML: "- b\n"} {
		if got := string(applyReport(t, format, output.Options{Query: query}, some)); got != want {
			t.Errorf("-o %s: got %q, want %q", format, got, want)
		}
	}
}

func TestRuleStatusOfWrites(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Name: "a"}
	some := []apply.Result{
		{Key: key, Outcome: apply.Applied},
		{Key: key, Outcome: apply.Terminating},
		{Key: key, Outcome: apply.Managed, Err: &apply.ObjectError{Key: key, Err: &apply.ManagedError{By: "Helm release r", Source: "the chart"}}},
		{Key: key, Outcome: apply.Failed, Err: &apply.ObjectError{Key: key, Err: errors.New("no")}},
	}
	got := string(applyReport(t, formats.YAML, output.Options{Query: "results[].status"}, some))
	if want := "- Completed\n- Skipped\n- Skipped\n- Failed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestQueryOfWritesRefused(t *testing.T) {
	for what, c := range map[string]struct{ format, query, want string }{
		"with lines for people": {formats.Summary, "results", "a query works on the report: use it with -o json or -o yaml"},
		"with names":            {formats.Name, "results", "a query works on the report: use it with -o json or -o yaml"},
		"that does not end":     {formats.JSON, "a[", `query "a[": `},
	} {
		_, err := formats.NewWrites(c.format, output.Options{Query: c.query}, &formats.Reports{}, io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", what, err, c.want)
		}
	}
}

func TestApplySchema(t *testing.T) {
	s := compiled(t, applySchema)
	for _, dryRun := range []string{"", "client", "server"} {
		for _, some := range [][]apply.Result{nil, everyOutcome()} {
			o := output.Options{DryRun: dryRun, Context: output.Context{Server: "https://127.0.0.1", Operation: "auto"}}
			if err := s.Validate(readReport(t, applyReport(t, formats.JSON, o, some))); err != nil {
				t.Error(err)
			}
			asJSON, err := yaml.YAMLToJSON(applyReport(t, formats.YAML, o, some))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(readReport(t, asJSON)); err != nil {
				t.Errorf("as YAML: %v", err)
			}
		}
	}
}

// fullApplyReport holds every field that a report can have, on one result.
func fullApplyReport(t *testing.T) []byte {
	t.Helper()
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	takeover := request.Takeover{Manager: "hpa", Operation: metav1.ManagedFieldsOperationUpdate, Fields: fieldpath.NewSet(replicas), Verdict: request.Contested}
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Pod"}, Version: "v1", Namespace: "n", Name: "p", UID: "u", Subresource: "status", Cluster: "a"}
	return applyReport(t, formats.JSON, output.Options{
		DryRun:  "server",
		Context: output.Context{Context: "c", Server: "s", User: "u", Namespace: "n", Operation: "auto", Version: "v", Time: "2026-01-02T15:04:05Z"},
	}, []apply.Result{{
		Key: key, Outcome: apply.Conflicted, Method: request.JSONPatch, Reason: request.Reason{Kind: request.Removal}, Retries: 1,
		Takeovers: []request.Takeover{takeover}, OwnersUnknown: true, Instead: "x",
		Err:        &apply.ObjectError{Key: key, Err: &apply.ConflictError{Takeovers: []request.Takeover{takeover}}},
		Autoscaled: []engine.Impact{{Owner: "HorizontalPodAutoscaler p", Fields: []fieldpath.Path{replicas}}},
		Rules:      []engine.RuleRef{{Dialect: "d", Policy: "p", Rule: "r", Via: "v", Origin: "o", Severity: "low"}},
	}}, fleet())
}
