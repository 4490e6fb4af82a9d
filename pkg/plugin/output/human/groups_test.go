package human_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
)

func member(namespace, name string, likeness byte, policy string) human.Member {
	return human.Member{Subject: engine.ObjectKey{Namespace: namespace, Name: name}, Likeness: [32]byte{likeness}, Policy: policy}
}

func collect(g *human.Groups, members ...human.Member) {
	for _, m := range members {
		if !g.Join(m) {
			g.Found(m, human.Text{Body: []byte{m.Likeness[0]}})
		}
	}
}

// shape is "title: first(count) ..." for each section.
func shape(sections []*human.Section) []string {
	var out []string
	for _, s := range sections {
		text := s.Title + ":"
		for _, g := range s.Groups {
			text += fmt.Sprintf(" %s(%d)", g.First.Name, g.Count)
		}
		out = append(out, text)
	}
	return out
}

func TestGroupsJoin(t *testing.T) {
	members := []human.Member{
		member("shop", "a", 1, "p"), member("shop", "b", 2, "q"), member("db", "c", 1, "p"), member("", "d", 1, "p"),
	}
	for by, want := range map[output.GroupBy][]string{
		"":                 {": a(3) b(1)"},
		output.ByPatch:     {": a(3) b(1)"},
		output.ByPolicy:    {"p: a(3)", "q: b(1)"},
		output.ByNamespace: {"(objects without a namespace): d(1)", "db: c(1)", "shop: a(1) b(1)"},
	} {
		g := human.Groups{By: by}
		collect(&g, members...)
		if diff := cmp.Diff(want, shape(g.Take())); diff != "" {
			t.Errorf("by %q: -want +got:\n%s", by, diff)
		}
		if again := g.Take(); len(again) != 0 {
			t.Errorf("by %q: taken twice: %v", by, shape(again))
		}
	}
}

func TestGroupsNamespaces(t *testing.T) {
	for _, expand := range []bool{false, true} {
		g := human.Groups{Expand: expand}
		for i := range 6 {
			collect(&g, member([]string{"x", "y", "y"}[i%3], fmt.Sprint(i), 1, ""))
		}
		group := g.Take()[0].Groups[0]
		want := []human.NamespaceCount{{Name: "y", N: 4}, {Name: "x", N: 2}}
		if diff := cmp.Diff(want, group.Namespaces()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		names := map[bool]int{false: 4, true: 6}[expand]
		if len(group.Names) != names || group.Names[0] != "x/0" {
			t.Errorf("expand %v: got %v", expand, group.Names)
		}
	}
}

func TestGroupBySet(t *testing.T) {
	by := output.ByObject
	if err := by.Set("color"); err == nil || by != output.ByObject {
		t.Errorf("got %q, %v", by, err)
	}
	if err := by.Set("policy"); by != output.ByPolicy || err != nil {
		t.Errorf("got %q, %v", by, err)
	}
}
