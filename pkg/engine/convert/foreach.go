package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// foreach converts loops: one or two mutations per entry, since each entry sees the result of the one before.
func (c *converter) foreach(r *rule, s *scope, list policydecode.Node) {
	var apart []mutation
	together := &operations{}
	for i, n := range list.List() {
		forms := read(fmt.Sprintf("[%d]", i), func() [][]mutation { return c.entry(r, s, n.Fields(), 0) })
		apart = append(apart, forms[0]...)
		together.list(forms[len(forms)-1][0].cel)
	}
	// In a single patch, each loop sees the object and the context as they were before all loops.
	r.forms = [][]mutation{apart, {{cel: together.expr()}}}
}

// entry converts one loop to the forms of its mutations.
func (c *converter) entry(r *rule, outer *scope, f *policydecode.Fields, level int) [][]mutation {
	s, l := c.loop(r, outer, f, level)
	if f.Has("patchStrategicMerge") {
		return c.mergeEach(r, s, l, f)
	}
	out := &operations{}
	c.patchEach(r, s, f, out, level)
	return [][]mutation{{{cel: out.expr()}}}
}

func (c *converter) loop(r *rule, outer *scope, f *policydecode.Fields, level int) (*scope, *loop) {
	closed(f, "", "list", "order", "context", "preconditions", "patchStrategicMerge",
		"patchesJson6902", "foreach")
	one(f, "", "patchStrategicMerge", "patchesJson6902", "foreach")
	v := read("list", func() translate.Value { return outer.Query(f.At("list").Text()) })
	outer.need(v.Guard())
	v, isList := v.AsList()
	if never, ok := expr.BoolOf(isList); ok && !never { // Kyverno makes a list of one of it
		panic(refuseField("list", "write the patch without a loop", "what is looped over is no list"))
	}
	outer.need(isList)
	l := loop{list: listPlace(outer, c.root(r), f.At("list").Text()), each: v.Or(expr.List())}
	if l.descending = f.Has("patchStrategicMerge"); f.Has("order") {
		l.descending = f.At("order").Text() == "Descending"
	}
	if l.list.root != "" {
		l.each = l.list.elements()
	} else if last := strings.LastIndex(f.At("list").Text(), "."); last >= 0 {
		l.list.path = []string{strings.TrimSuffix(f.At("list").Text()[last+1:], "[]")}
	}
	l.variable, l.index = outer.variables(l.list, map[string]bool{})
	s := &scope{Scope: outer.Child(), always: outer.always, needs: outer.needs, loops: slices.Clone(outer.loops)}
	s.Bind(l.variable + "s")
	s.loops = append(s.loops, l)
	current := &s.loops[len(s.loops)-1]
	for _, suffix := range []string{"", fmt.Sprint(level)} {
		s.Define("element"+suffix, translate.Expression(expr.Name(l.variable), v.Elements()))
		s.Define("elementIndex"+suffix, translate.Expression(expr.Name(l.index), translate.Whole))
	}
	c.context(r, s, f.At("context"))
	if f.Has("preconditions") {
		inField("preconditions", func() { s.conditionsOfLoop(f.Values["preconditions"]) })
	}
	return s, current
}

var plainList = regexp.MustCompile("^(request\\.object|target|element[0-9]*)\\.([A-Za-z][A-Za-z0-9.]*?)(\\[\\])?( *\\|\\| *`\\[\\]`)?$")

// listPlace is the place of a list in the object; its root is empty for other lists.
func listPlace(s *scope, root place, query string) place {
	m := plainList.FindStringSubmatch(strings.TrimSpace(query))
	if m == nil {
		return place{}
	}
	at := root
	if strings.HasPrefix(m[1], "element") {
		if len(s.loops) == 0 {
			return place{}
		}
		outer := s.loops[len(s.loops)-1]
		if outer.list.root == "" {
			return place{}
		}
		at = outer.list.element(outer.variable, indexText(outer.index))
	}
	for _, name := range strings.Split(m[2], ".") {
		atom, ok := at.shape()
		at = at.field(name, s.sure(at, name))
		if ok && atom.Map != nil && len(atom.Map.Fields) > 0 && !slices.ContainsFunc(at.types, hasShape) {
			panic(refuseField("list", "correct the name", "the object has no field %s, so that there is nothing to loop over", strings.Join(at.path, ".")))
		}
	}
	return at
}

func hasShape(t diff.Type) bool {
	atom, ok := t.Atom()
	return ok && atom != (schema.Atom{})
}

// patchEach adds the operations of a loop with a JSON patch or a nested loop.
func (c *converter) patchEach(r *rule, s *scope, f *policydecode.Fields, out *operations, level int) {
	root := c.root(r)
	l := &s.loops[len(s.loops)-1]
	each := &operations{outer: out}
	if f.Has("foreach") {
		for i, n := range f.At("foreach").List() {
			inner := n.Fields()
			inField(fmt.Sprintf("foreach[%d]", i), func() {
				below, _ := c.loop(r, s, inner, level+1)
				c.patchEach(r, below, inner, each, level+1)
			})
		}
		out.loop(l, each)
		return
	}
	text := f.At("patchesJson6902").Text()
	if text == "" {
		panic(refuseField("", "", "a loop without a JSON patch"))
	}
	all := read("patchesJson6902", func() []patchOperation { return s.operations(text) })
	removes := slices.ContainsFunc(all,
		func(o patchOperation) bool { return o.op == "remove" && s.isElement(o.path, root, l) })
	if removes {
		if len(all) > 1 || f.At("order").Text() != "Descending" {
			panic(refuseField("patchesJson6902", "remove elements in a loop of its own, with order: Descending", "elements are removed while others are counted"))
		}
		where, kept := expr.And(l.where...), expr.List()
		if always, _ := expr.BoolOf(where); !always {
			kept = expr.Macro(l.list.plain, "filter", l.variable, expr.Not(where))
		}
		some := expr.Macro(l.list.elements(), "exists", l.variable, where)
		out.when(some, oneOperation(operation("replace", l.list.jsonPointer(), kept)))
		return
	}
	inField("patchesJson6902", func() { s.patch(all, root, each) })
	out.loop(l, each)
}

func (s *scope) isElement(path []segment, root place, l *loop) bool {
	if l.list.root == "" {
		return false
	}
	at := root
	for _, seg := range path {
		at = s.descend(at, seg)
	}
	return at.root == l.variable && at.of == nil
}

func (o *operations) loop(l *loop, each *operations) {
	o.addForEach(l.each, &group{variable: l.variable, index: l.index, descending: l.descending, where: l.where},
		each)
}

func (c *converter) mergeEach(r *rule, s *scope, l *loop, f *policydecode.Fields) [][]mutation {
	patch, ok := f.Values["patchStrategicMerge"].(map[string]any)
	if !ok {
		panic(refuseField("patchStrategicMerge", "", "is no mapping"))
	}
	m := merge{scope: s, lists: c.lists(r), used: map[string]bool{}, loop: l}
	root := c.root(r)
	var guards []expr.Expr
	edits := read("patchStrategicMerge", func() []*edit { return m.fields(patch, root, &guards) })
	if len(guards) > 0 {
		panic(refuseField("patchStrategicMerge", "write them as preconditions of the loop", "conditions in a loop"))
	}
	if m.looped { // each element of the loop is patched
		return formsOf(edits, root)
	}
	out := &operations{}
	each := &operations{outer: out}
	each.edits(edits)
	out.loop(l, each)
	return [][]mutation{{{cel: out.expr()}}}
}
