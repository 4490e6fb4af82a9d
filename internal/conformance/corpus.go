package conformance

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// Options say where the cases of a directory are run.
type Options struct {
	// NewCluster makes a cluster of the objects that are evaluated and of those that exist besides. The laws
	// compare these objects with what they were before, so that it must hand on the very objects. The default
	// is NewCluster.
	NewCluster func(live, others []*unstructured.Unstructured, r engine.Request) (Cluster, error)
	// Annotate has dialects annotate the targets of mutate-existing rules.
	Annotate bool
}

// RunDirectory runs every case of a directory that has policies in the dialect's language, each as a subtest.
// It fails the test where there is none. Update rewrites results that are other than they were.
func RunDirectory(t *testing.T, d engine.Dialect, dir string, update bool, o Options) {
	t.Helper()
	ran := false
	for file, archive := range archives(t, dir) {
		c := readCase(t, d, archive, o)
		if len(c.documents) == 0 {
			continue
		}
		ran = true
		t.Run(nameOf(file), func(t *testing.T) {
			for _, err := range c.check(t, update) {
				t.Error(err)
			}
			if !update {
				return
			}
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
	if !ran {
		t.Errorf("no case has a section policy.%s.yaml", d.Name())
	}
}

// testCase is a file of the corpus.
type testCase struct {
	Options
	dialect       engine.Dialect
	archive       *txtar.Archive
	sections      map[string]string
	notIdempotent string // why, if it is not
	documents     []engine.Document
	live, world   []*unstructured.Unstructured
	request       engine.Request
}

// sectionName matches what is read: a typing error in another name would leave something untested.
var sectionName = regexp.MustCompile(`^((live|world|request|want)\.yaml|want\.error|trace\.\w+|policy\.\w+\.yaml)$`)

func readCase(t testing.TB, d engine.Dialect, archive *txtar.Archive, o Options) *testCase {
	t.Helper()
	c := &testCase{Options: o, dialect: d, archive: archive, sections: sectionsOf(archive)}
	if c.NewCluster == nil {
		c.NewCluster = NewCluster
	}
	_, reason, _ := strings.Cut("\n"+string(archive.Comment), "\nnot idempotent: ")
	c.notIdempotent, _, _ = strings.Cut(reason, "\n")
	for name := range c.sections {
		if !sectionName.MatchString(name) {
			t.Errorf("%s: no such section", name)
		}
	}
	policies := "policy." + d.Name() + ".yaml"
	for _, u := range ReadObjects(t, c.sections[policies]) {
		c.documents = append(c.documents, engine.NewDocument(u, policies))
	}
	c.live, c.world = ReadObjects(t, c.sections["live.yaml"]), ReadObjects(t, c.sections["world.yaml"])
	if len(c.live) == 0 || len(archive.Comment) == 0 {
		t.Error("the case has no object to evaluate, or does not say what it shows")
	}
	r := struct {
		Operation engine.Operation `json:"operation"`
		User      string           `json:"user"`
		Groups    []string         `json:"groups"`
	}{Operation: engine.OperationAuto}
	if err := yaml.UnmarshalStrict([]byte(c.sections["request.yaml"]), &r); err != nil {
		t.Errorf("request.yaml: %v", err)
	}
	c.request = engine.Request{Operation: r.Operation, User: engine.UserInfo{Username: r.User, Groups: r.Groups}}
	return c
}

// check returns what is wrong, laws first.
func (c *testCase) check(t testing.TB, update bool) []error {
	t.Helper()
	got, err := c.run(t, c.live, c.world)
	if err != nil {
		return []error{err}
	}
	problems := slices.Concat(got.broken(), c.repeated(t, got), c.idempotent(t, got))
	for _, r := range []struct {
		section, text string
		optional      bool // a case without the section does not ask
	}{
		{"want.yaml", got.objects(t), false}, {"want.error", got.errors(), false}, {"trace." + c.dialect.Name(), got.trace(), true},
	} {
		want, present := c.sections[r.section]
		if r.optional && !present {
			continue
		}
		diff := gocmp.Diff(strings.Split(strings.TrimSpace(want), "\n"), strings.Split(strings.TrimSpace(r.text), "\n"))
		if r.section == "want.yaml" { // the order and the writing of objects say nothing
			diff = gocmp.Diff(byName(t, want), byName(t, r.text))
		}
		switch {
		case diff == "":
		case update:
			setSection(c.archive, r.section, r.text)
		default:
			problems = append(problems, fmt.Errorf("%s (-want +got):\n%s", r.section, diff))
		}
	}
	return problems
}

func byName(t testing.TB, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, u := range ReadObjects(t, text) {
		out[engine.KeyOf(u).String()] = u.Object
	}
	return out
}

// setSection rewrites a section, adds it at the end, or removes it where there is nothing left to say.
func setSection(a *txtar.Archive, name, text string) {
	i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		i = len(a.Files)
		a.Files = append(a.Files, txtar.File{Name: name})
	}
	if a.Files[i].Data = []byte(text); text == "" {
		a.Files = slices.Delete(a.Files, i, i+1)
	}
}

// answer is what one evaluation said.
type answer struct {
	changes  []*engine.Change
	refused  error // what did not compile
	modified string
	typeOf   func(schema.GroupVersionKind) diff.Type // how the server compares objects of a kind
}

// run evaluates objects from scratch. Its error means that no answer was given.
func (c *testCase) run(t testing.TB, live, others []*unstructured.Unstructured) (*answer, error) {
	t.Helper()
	before := copies(c.documents, live, others)
	cluster, err := c.NewCluster(live, others, c.request)
	if err != nil {
		return nil, fmt.Errorf("making the cluster: %w", err)
	}
	program, err := c.dialect.Compile(engine.Compilation{
		Documents: c.documents, Annotate: c.Annotate, Warn: func(engine.CompileError) {},
	})
	out := &answer{refused: err, typeOf: func(gvk schema.GroupVersionKind) diff.Type {
		return diff.TypeOf(t.Context(), cluster.World.Reader, gvk)
	}}
	if program == nil {
		return out, nil
	}
	e := evaluation.New([]engine.Program{program}, cluster.World, evaluation.Options{Request: c.request})
	err = errors.Join(e.Prepare(t.Context(), cluster.Objects), e.Run(t.Context(), cluster.Objects, func(c *engine.Change) error {
		out.changes = append(out.changes, c)
		if c.Created != nil {
			out.changes = append(out.changes, c.Created)
		}
		return nil
	}))
	out.modified = gocmp.Diff(before, copies(c.documents, live, others))
	return out, err
}

// copies are deep copies of all that an evaluation is given.
func copies(documents []engine.Document, lists ...[]*unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	for _, d := range documents {
		out = append(out, d.Object().DeepCopy().Object)
	}
	for _, u := range slices.Concat(lists...) {
		out = append(out, u.DeepCopy().Object)
	}
	return out
}

// ended are the objects that end changed, by name: those that an update changes with what a creation does
// differently.
func (a *answer) ended() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i, c := range a.changes {
		switch {
		case i > 0 && c.Changed() && c.AsCreated && a.changes[i-1].Changed():
			out[len(out)-1] = &unstructured.Unstructured{Object: filled(out[len(out)-1].Object, c.After.Object)}
		case c.Changed():
			out = append(out, c.After)
		}
	}
	slices.SortStableFunc(out, func(x, y *unstructured.Unstructured) int {
		return cmp.Compare(engine.KeyOf(x).String(), engine.KeyOf(y).String())
	})
	return out
}

// filled is an object with the fields that only its creation has.
func filled(updated, created map[string]any) map[string]any {
	out := maps.Clone(updated)
	for name, v := range created {
		above, isMap := out[name].(map[string]any)
		below, areMaps := v.(map[string]any)
		if _, is := out[name]; !is {
			out[name] = v
		} else if isMap && areMaps {
			out[name] = filled(above, below)
		}
	}
	return out
}

func (a *answer) objects(t testing.TB) string {
	t.Helper()
	var all []string
	for _, u := range a.ended() {
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return strings.Join(all, "---\n")
}

// errors is a line for all that did not compile and for each rule that failed.
func (a *answer) errors() string {
	var b strings.Builder
	if a.refused != nil {
		fmt.Fprintln(&b, a.refused)
	}
	for _, c := range a.changes {
		for _, s := range c.Steps {
			if s.Outcome.Incomplete() {
				fmt.Fprintf(&b, "%s: %s on %s: %v\n", s.Outcome, s.Rule, c.Subject, s.Err)
			}
		}
	}
	return b.String()
}

// trace is a heading for each object, then a line for each step, then a line for each field.
func (a *answer) trace() string {
	var b strings.Builder
	for _, c := range a.changes {
		if len(c.Steps) == 0 {
			continue
		}
		fmt.Fprintln(&b, c.Subject)
		for _, s := range c.Steps {
			fmt.Fprintln(&b, "  "+stepLine(s))
		}
		for _, f := range c.Fields {
			fmt.Fprintln(&b, "    "+fieldLine(f))
		}
	}
	return b.String()
}

func stepLine(s engine.Step) string {
	line := fmt.Sprintf("%s %s", s.Outcome, s.Rule)
	if s.Trigger().Name != "" {
		line += fmt.Sprintf(" through %s", s.Trigger())
	}
	for _, r := range s.TriggerChangedBy {
		line += fmt.Sprintf(", as changed by %s", r)
	}
	if s.AsCreated {
		line += ", as if created"
	}
	if s.Err != nil {
		line += ": " + s.Err.Error()
	}
	for _, w := range s.Warnings {
		line += "; warning: " + string(w)
	}
	return line
}

func fieldLine(f engine.FieldChange) string {
	text := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
	switch f.Kind {
	case engine.Added:
		return fmt.Sprintf("+ %s: %s  (%s)", f.Path, text(f.To), f.Rule())
	case engine.Removed:
		return fmt.Sprintf("- %s: %s  (%s)", f.Path, text(f.From), f.Rule())
	default:
		return fmt.Sprintf("~ %s: %s -> %s  (%s)", f.Path, text(f.From), text(f.To), f.Rule())
	}
}
