package conformance

import (
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Compiled says what comes of compiling policy.yaml: what is reported, the rules in order, what is worth
// listing, and what becomes of the objects of live.yaml, with reasons. The sections only and skip choose
// rules, origin is where the policies come from, user who sends the requests, and reinvocation is there for
// the second round of a request.
func Compiled(t *testing.T, d engine.Dialect, sections map[string]string) string {
	t.Helper()
	var out strings.Builder
	c := engine.Compilation{Warn: func(e engine.CompileError) { fmt.Fprintf(&out, "warning: %v\n", &e) }}
	for i, u := range ReadObjects(t, sections["policy.yaml"]) {
		origin := strings.TrimSpace(sections["origin"])
		if origin == "" {
			origin = fmt.Sprintf("policy.yaml:%d", i+1)
		}
		c.Documents = append(c.Documents, engine.NewDocument(u, origin))
	}
	c.Rules.Only, c.Rules.Skip = strings.Fields(sections["only"]), strings.Fields(sections["skip"])
	program, err := d.Compile(c)
	if err != nil {
		fmt.Fprintf(&out, "%v\n", err)
	}
	for _, r := range program.Rules() {
		fmt.Fprintf(&out, "rule %s\n", r)
	}
	for _, s := range program.Selections() {
		fmt.Fprintf(&out, "selects %s\n", SelectionText(s))
	}
	live := ReadObjects(t, sections["live.yaml"])
	cluster, err := NewCluster(live, nil, engine.Request{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range live {
		target := TargetOf(u)
		target.Request.User.Username = strings.TrimSpace(sections["user"])
		_, target.Request.Reinvocation = sections["reinvocation"]
		fmt.Fprintf(&out, "on %s:\n", target.Key)
		if _, err := program.Evaluate(t.Context(), target, cluster.World, Steps{&out}); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TargetOf returns an object as one that an update leaves as it is.
func TargetOf(u *unstructured.Unstructured) engine.Target {
	return engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
}

// SelectionText says what a selection selects.
func SelectionText(s engine.Selection) string {
	text := fmt.Sprintf("group=%q version=%q kind=%q", s.Group, s.Version, s.Kind)
	for _, part := range []struct{ name, value string }{
		{"resource", s.Resource}, {"subresource", s.Subresource}, {"as", s.ReadAs}, {"namespace", s.Namespace}, {"name", s.Name},
	} {
		if part.value != "" {
			text += " " + part.name + "=" + part.value
		}
	}
	if s.Labels != nil {
		text += " labels=" + metav1.FormatLabelSelector(s.Labels)
	}
	return text
}

// Steps is a Sink that asks for every reason and writes a line for each step.
type Steps struct{ io.Writer }

// Wants reports that reasons of all outcomes are wanted.
func (Steps) Wants(engine.Outcome) bool { return true }

// Step writes the step.
func (w Steps) Step(s engine.Step) {
	fmt.Fprintf(w, "  %s %s", s.Rule, s.Outcome)
	if s.Err != nil {
		fmt.Fprintf(w, ": %v", s.Err)
	}
	if s.NotIdempotent != "" {
		fmt.Fprintf(w, "; not idempotent: %s", s.NotIdempotent)
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "; warning: %s", warning)
	}
	fmt.Fprintln(w)
}

// FuzzCompile holds that no string, read as a policy, makes compiling it or evaluating it panic, on an ordinary
// object and on one that no server would hold. The first files of the archives in some directories are where
// it begins.
func FuzzCompile(f *testing.F, d engine.Dialect, gvk schema.GroupVersionKind, dirs ...string) {
	f.Helper()
	for _, dir := range dirs {
		for _, archive := range archives(f, dir) {
			f.Add(string(archive.Files[0].Data))
		}
	}
	objects := []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop"}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": "none", "spec": map[string]any{"containers": []any{nil, "x"}}}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			u.Object = map[string]any{"spec": text}
		}
		u.SetGroupVersionKind(gvk)
		program, _ := d.Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(u, "")}, Annotate: true})
		for _, live := range objects {
			evaluateAll(t, program, TargetOf(live.DeepCopy()))
		}
	})
}

// evaluateAll runs the rules on the object, and those with targets also as if it were their target.
func evaluateAll(t *testing.T, program engine.Program, target engine.Target) {
	t.Helper()
	cluster, err := NewCluster([]*unstructured.Unstructured{target.Object}, nil, engine.Request{})
	if err != nil { // no world holds the object; the rules meet it all the same
		cluster.World = NewWorld()
	}
	sink := Steps{io.Discard}
	if _, err := program.Evaluate(t.Context(), target, cluster.World, sink); err != nil {
		t.Fatal(err)
	}
	propagator, ok := program.(engine.Propagator)
	if !ok {
		return
	}
	effects, err := propagator.Effects(t.Context(), target, cluster.World, sink)
	if err != nil {
		t.Fatal(err)
	}
	for _, effect := range effects {
		sink.Step(effect.Apply(t.Context(), target, cluster.World, sink))
	}
}
