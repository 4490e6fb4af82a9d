package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// result is the content that a section should have.
type result struct {
	section  string
	text     string
	optional bool // a case without the section does not ask
	objects  bool // it is compared by value and not by its text
}

// results are what the sections should say after an evaluation.
func (c *testCase) results(dialect string, a *answer) ([]result, error) {
	var objects bytes.Buffer
	for _, u := range a.ended() {
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", engine.KeyOf(u), err)
		}
		if objects.Len() > 0 {
			objects.WriteString("---\n")
		}
		objects.Write(text)
	}
	return []result{
		{section: "want.yaml", text: objects.String(), objects: true},
		{section: "want.error", text: a.errors()},
		{section: "trace." + dialect, text: a.trace(), optional: true},
	}, nil
}

// difference is empty where the section says what it should.
func (r result) difference(want string) string {
	if !r.objects {
		return gocmp.Diff(lines(want), lines(r.text))
	}
	w, err := decoded(want)
	if err != nil {
		return err.Error()
	}
	g, err := decoded(r.text)
	if err != nil {
		return err.Error()
	}
	return gocmp.Diff(w, g)
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// decoded reads objects by their names, whose order says nothing.
func decoded(text string) (map[string]any, error) {
	c := testCase{archive: &txtar.Archive{Files: []txtar.File{{Name: "text", Data: []byte(text)}}}}
	list, err := c.objects("text")
	out := map[string]any{}
	for _, u := range list {
		out[engine.KeyOf(u).String()] = u.Object
	}
	return out, err
}

// ended are the objects that end changed, by name.
func (a *answer) ended() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, c := range a.changes {
		if c.Changed() {
			out = append(out, c.After)
		}
	}
	slices.SortStableFunc(out, func(x, y *unstructured.Unstructured) int {
		return cmp.Compare(engine.KeyOf(x).String(), engine.KeyOf(y).String())
	})
	return out
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

// trace is a heading per object, then a line per step, then a line per field.
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
	if s.Trigger.Name != "" {
		line += fmt.Sprintf(" through %s", s.Trigger)
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
	switch f.Kind {
	case engine.Added:
		return fmt.Sprintf("+ %s: %s  (%s)", f.Path, jsonText(f.To), f.Rule)
	case engine.Removed:
		return fmt.Sprintf("- %s: %s  (%s)", f.Path, jsonText(f.From), f.Rule)
	default:
		return fmt.Sprintf("~ %s: %s -> %s  (%s)", f.Path, jsonText(f.From), jsonText(f.To), f.Rule)
	}
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// setSection rewrites a section, adds it at the end, or removes it where there
// is nothing left to say.
func (c *testCase) setSection(name, text string) {
	files := slices.DeleteFunc(slices.Clone(c.archive.Files), func(f txtar.File) bool { return f.Name == name && text == "" })
	for i := range files {
		if files[i].Name == name {
			files[i].Data = []byte(text)
			c.archive.Files = files
			return
		}
	}
	if text != "" {
		files = append(files, txtar.File{Name: name, Data: []byte(text)})
	}
	c.archive.Files = files
}

func (c *testCase) format() []byte { return txtar.Format(c.archive) }
