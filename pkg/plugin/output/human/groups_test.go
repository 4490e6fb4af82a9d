package human_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/internal/heap"
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

func TestGroupsAreBounded(t *testing.T) {
	var g human.Groups
	text := human.Text{Body: bytes.Repeat([]byte("x"), 1<<20)}
	for i := range 64 {
		g.Found(member("shop", fmt.Sprint(i), byte(i), ""), text)
		if g.Full() {
			if n := len(g.Take()[0].Groups); n > 16 || g.Full() {
				t.Errorf("%d groups held", n)
			}
			return
		}
	}
	t.Error("64 MB are held")
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

// What is held until there is too much of it takes about as much memory as is allowed.
func TestGroupsTakeWhatTheyHold(t *testing.T) {
	const most = 10 << 20
	for _, size := range []int{10, 300, 5000} {
		before := heap.InUse()
		var g human.Groups
		groups := 0
		for ; !g.Full(); groups++ {
			m := member("shop", fmt.Sprint("settings-", groups), 0, "p")
			binary.BigEndian.PutUint64(m.Likeness[:], uint64(groups)) //nolint:gosec // it is not negative
			g.Found(m, human.Text{Body: make([]byte, size, 2*size)})
		}
		if held := heap.InUse() - before; held > most {
			t.Errorf("%d groups with texts of %d bytes take %d bytes, want at most %d", groups, size, held, most)
		}
		runtime.KeepAlive(&g)
	}
}
