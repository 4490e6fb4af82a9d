package html_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/html"
)

var (
	labels = engine.RuleRef{Dialect: "kyverno", Policy: "team-labels", Rule: "add", Origin: "policies/labels.yaml:3"}
	images = engine.RuleRef{Dialect: "gatekeeper", Policy: "AssignImage pin", Origin: "policies/images.yaml:1"}
)

// configMap is a change of one: its data before and after.
func configMap(rule engine.RuleRef, namespace, name string, before, after map[string]any) engine.Change {
	return changeOf(rule, "ConfigMap", namespace, name, before, after)
}

func changeOf(rule engine.RuleRef, kind, namespace, name string, before, after map[string]any) engine.Change {
	state := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}, "data": data,
		}}
	}
	c := engine.Change{Before: state(before), After: state(after)}
	c.Subject = engine.KeyOf(c.After)
	outcome := engine.Unchanged
	for _, f := range diff.Compare(c.Before.Object, c.After.Object, diff.Type{}) {
		f.Rule = rule
		c.Fields = append(c.Fields, f)
		outcome = engine.Changed
	}
	c.Steps = []engine.Step{{Rule: rule, Outcome: outcome}}
	return c
}

func failing(c engine.Change, reason string) engine.Change {
	c.Steps = append(c.Steps, engine.Step{Rule: images, Outcome: engine.Failed, Err: errors.New(reason)})
	return c
}

func warning(c engine.Change, code engine.ImpactCode, text, brief string, pods int) engine.Change {
	c.Impacts = append(c.Impacts, engine.Impact{Code: code, Text: text, Brief: brief, Pods: pods, Advice: "look at it"})
	return c
}

// review is a run with a bit of everything.
func review() []engine.Change {
	var out []engine.Change
	for i := range 12 {
		out = append(out, configMap(labels, []string{"shop", "payments", "platform"}[i%3], fmt.Sprint("settings-", i),
			map[string]any{"a": "1"}, map[string]any{"a": "1", "team": "blue"}))
	}
	for i := range 3 {
		c := configMap(images, "shop", fmt.Sprint("image-", i), map[string]any{"image": "web:1"}, map[string]any{"image": "registry/web:1"})
		out = append(out, warning(c, engine.ImpactRollout, fmt.Sprint(i+1, " Pods would restart"), "Pods would restart", i+1))
	}
	out = append(out,
		configMap(labels, "shop", "script", map[string]any{"run.sh": "set -e\necho one\nexit 0\n"}, map[string]any{"run.sh": "set -e\necho two\nexit 0\n"}),
		failing(configMap(labels, "payments", "broken", map[string]any{"a": "1"}, map[string]any{"a": "2"}), "the expression ended in an error"),
		configMap(labels, "shop", "untouched", map[string]any{"a": "1"}, map[string]any{"a": "1"}),
		changeOf(labels, "Secret", "shop", "password", map[string]any{"p": "c2VjcmV0LXZhbHVl"}, map[string]any{"p": "b3RoZXItdmFsdWU="}),
	)
	return out
}

// many is a run whose changes are all different.
func many(n int) []engine.Change {
	var out []engine.Change
	for i := range n {
		out = append(out, configMap(labels, fmt.Sprint("namespace-", i%40), fmt.Sprint("object-", i),
			map[string]any{"a": "1", "b": "2", "c": "3"}, map[string]any{"a": "1", "b": fmt.Sprint("value-", i), "c": "3"}))
	}
	return out
}

// harmful is a run with a change for each hostile text, in which everything that can be chosen is it.
func harmful() []engine.Change {
	var out []engine.Change
	for i, of := range hostile.Texts() {
		text := of.Text
		rule := engine.RuleRef{Dialect: "kyverno", Policy: text, Rule: text, Via: text, Origin: text + ":3"}
		c := configMap(rule, text, text, map[string]any{text: text}, map[string]any{text: text + "2", text + "3": fmt.Sprint(i)})
		c.Steps[0].Warnings = []engine.Warning{engine.Warning(text)}
		c.Steps[0].NotIdempotent = text
		out = append(out, warning(failing(c, text), engine.ImpactCode(text), text, "", 1))
	}
	return out
}

// markup are the texts that would become markup or a script, one after the other.
var markup = func() string {
	var b strings.Builder
	for _, of := range hostile.Texts() {
		if of.Class == "HTML" || of.Class == "direction" {
			b.WriteString(of.Text)
		}
	}
	return b.String()
}()

var harmfulContext = output.Context{Context: markup, Server: markup, User: markup, Namespace: markup, Version: markup, Time: markup}

// pageOf is the page of a run.
func pageOf(t testing.TB, o output.Options, changes []engine.Change, troubles ...error) string {
	t.Helper()
	var b bytes.Buffer
	o.Out = &b
	p := outputtest.Printer(html.New(o))
	s := evaluation.NewSummary(nil)
	for i := range changes {
		s.Add(&changes[i])
		if err := p.Print(output.Evaluated{Change: &changes[i]}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range troubles {
		if err := p.Print(output.Problem{Err: err}); err != nil {
			t.Fatal(err)
		}
	}
	if err := outputtest.End(p, *s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
