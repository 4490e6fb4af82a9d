package convert

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

type rule struct {
	name    string // as written
	index   int    // in spec.rules
	derived bool
	selection
	guards          []expr.Expr // conditions of the whole rule besides its selection
	variables       []named
	beside          []named                 // variables of earlier rules that may share its policy
	existing        *existing               // of a rule with targets
	target          schema.GroupVersionKind // the kind of the targets
	policyNamespace string                  // of a Policy
	contexts        policydecode.Node
	param           types.NamespacedName // the ConfigMap parameter of the new policy
	part            int                  // the index of its target
	inside          bool                 // its conditions cannot be policy conditions
	notes           []string             // differences from the old rule
	// the condition that it changes anything if it applies; nil if unknown
	changes expr.Expr
	never   bool // it never applies
	// forms are the ways to write the mutations, the simplest first.
	forms [][]mutation
}

type converter struct {
	Options
	document engine.Document
	ctx      context.Context
	rules    []*rule // converted so far
}

// beside are the variables of converted rules that may share a policy with this one.
func (c *converter) beside(r *rule) []named {
	var out []named
	for _, other := range c.rules {
		if other.existing == nil && other.selected() == r.selected() {
			out = append(out, other.variables...)
		}
	}
	return out
}

// rule converts one rule. It panics with a *Refusal.
func (c *converter) rule(w kyverno.WrittenRule, part int) *rule {
	c.spec()
	report := &policydecode.Report{}
	f := policydecode.Node{
		Report: report, Path: fmt.Sprintf("spec.rules[%d]", w.Index),
		Value: w.Fields,
	}.Fields()
	// Both skip requests of Kyverno's background controller by default; reportProperties are for reports.
	closed(f, "", "name", "match", "exclude", "context", "preconditions", "mutate",
		"reportProperties", "description", "skipBackgroundRequests")
	if f.Values["skipBackgroundRequests"] == false {
		panic(refuseField("skipBackgroundRequests", "leave it out, and set evaluation.skipBackgroundRequests of the MutatingPolicy", "is false"))
	}
	r := &rule{name: f.At("name").Text(), index: w.Index, derived: w.Derived, part: part, contexts: f.At("context")}
	for _, block := range []string{"match", "exclude"} { // filters replace the other fields
		if b := f.At(block).Fields(); len(b.At("any").List())+len(b.At("all").List()) > 0 {
			closed(b, block, "any", "all")
		}
	}
	in := match.Decode(f.At("match"))
	var out *match.Block
	if f.Has("exclude") {
		out = match.Decode(f.At("exclude"))
	}
	if err := report.Err(); err != nil {
		panic(&Refusal{Reason: err.Error(), Instead: "correct it first"})
	}
	m := matcher{mapper: c.Mapper, admission: c.To == MutatingAdmissionPolicy}
	if c.document.Key.Kind == "Policy" {
		m.namespace = cmp.Or(c.document.Key.Namespace, "default")
	}
	m.ephemeral = mentions(w.Fields, "ephemeralContainers")
	s := m.selection(in, out)
	r.selection, r.policyNamespace = *s, m.namespace
	r.beside = c.beside(r)
	sc := c.scope(r, f.At("mutate").Fields().Has("targets"))
	c.images(r, sc, w.Fields)
	c.context(r, sc, f.At("context"))
	if f.Has("preconditions") {
		conditions := read("preconditions", func() []expr.Expr { return sc.conditions(f.Values["preconditions"]) })
		r.guards = append(r.guards, conditions...)
	}
	c.exceptions(r, &m)
	c.mutate(r, sc, f.At("mutate").Fields())
	r.guards = append(r.guards, *sc.needs...)
	r.checkParam(f)
	r.notes = append(r.notes, sc.Notes()...)
	r.onlyOperation()
	return r
}

// mentions reports whether a value contains a string, in a key or a string.
func mentions(value any, text string) bool {
	return anyText(value, func(in string) bool { return strings.Contains(in, text) })
}

// anyText reports whether a predicate holds for any string or key in a value.
func anyText(value any, holds func(string) bool) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if holds(key) || anyText(v, holds) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(v any) bool { return anyText(v, holds) })
	case string:
		return holds(value)
	}
	return false
}

// onlyOperation moves a condition on the operation to the resource rules; or the reverse for existing
// objects, where Kyverno ignores the operations of resource rules.
func (r *rule) onlyOperation() {
	if r.existing != nil {
		if o := r.rules[0].Operations; !slices.Equal(o, []string{"CREATE", "UPDATE"}) {
			r.guards = append(r.guards, oneOf(expr.Path("request.operation"), o))
		}
		return
	}
	r.guards = slices.DeleteFunc(r.guards, func(c expr.Expr) bool {
		asked := operationAsked.FindStringSubmatch(c.String())
		if asked == nil {
			return false
		}
		left := slices.DeleteFunc(slices.Clone(r.rules[0].Operations), func(operation string) bool {
			return strings.Contains(asked[2]+asked[4], strconv.Quote(operation)) == (asked[1] == "!=" ||
				asked[3] == "!")
		})
		if len(left) == 0 {
			return false
		}
		for i := range r.rules {
			r.rules[i].Operations = left
			if !slices.Contains(left, "UPDATE") {
				r.rules[i].Resources = slices.DeleteFunc(slices.Clone(r.rules[i].Resources),
					func(name string) bool { return name == ephemeralContainers })
			}
		}
		return true
	})
}

// operationAsked matches a condition on only the operation.
var operationAsked = regexp.MustCompile(`^(?:request\.operation (==|!=) ("[A-Z]+")|(!?)\(?request\.operation in \[([^\]]*)\]\)?)$`)

func (c *converter) mutate(r *rule, s *scope, f *policydecode.Fields) {
	closed(f, "mutate", "targets", "mutateExistingOnPolicyUpdate", "foreach", "patchStrategicMerge",
		"patchesJson6902", "overlay", "patches")
	one(f, "mutate", "foreach", "patchStrategicMerge", "patchesJson6902", "overlay", "patches")
	if targets := f.At("targets").List(); len(targets) > 0 {
		c.targets(r, s, f, targets[r.part].Fields())
		return
	}
	r.guards = append(r.guards, c.patches(r, s, f)...)
}

// patches converts the patches of a rule, and returns their guards.
func (c *converter) patches(r *rule, s *scope, f *policydecode.Fields) (guards []expr.Expr) {
	merge := func(field string) {
		patch, ok := f.Values[field].(map[string]any)
		if !ok {
			panic(refuseField("mutate."+field, "", "is no mapping"))
		}
		inField("mutate."+field, func() { guards = c.strategicMerge(r, s, patch) })
	}
	switch {
	case f.Has("foreach"):
		inField("mutate.foreach", func() { c.foreach(r, s, f.At("foreach")) })
	case f.Has("patchStrategicMerge"):
		merge("patchStrategicMerge")
	case f.Has("patchesJson6902"):
		inField("mutate.patchesJson6902", func() { c.jsonPatch(r, s, f.At("patchesJson6902").Text()) })
	case f.Has("overlay"):
		merge("overlay")
	case f.Has("patches"):
		inField("mutate.patches", func() { c.jsonPatch(r, s, string(must(yaml.Marshal(f.Values["patches"])))) })
	default:
		panic(refuseField("mutate", "", "has no patch"))
	}
	return guards
}

func (c *converter) jsonPatch(r *rule, s *scope, text string) {
	out := &operations{}
	s.patch(s.operations(text), c.root(r), out)
	r.forms = [][]mutation{{{cel: out.expr()}}}
}

// typed are the kinds whose schemas decide how to write a patch; one unknown kind if the rule also has
// others.
func (r *rule) typed() []schema.GroupVersionKind {
	if r.target.Kind != "" {
		return []schema.GroupVersionKind{r.target}
	}
	if kinds := r.kindsOf(); len(kinds) > 0 {
		return kinds
	}
	return []schema.GroupVersionKind{{}}
}

// types are the types of the kinds. A nullable field has no type, so that expressions check it: CEL fails on
// a null that is used as a map or a string.
func (c *converter) types(kinds []schema.GroupVersionKind) []diff.Type {
	out := make([]diff.Type, len(kinds))
	for i, k := range kinds {
		out[i] = c.typeOf(k)
	}
	return out
}

func (c *converter) typeOf(kind schema.GroupVersionKind) diff.Type {
	if diff.BuiltIn(kind.Group) { // they have no nulls
		return diff.TypeOf(c.ctx, c.Reader, kind)
	}
	s, err := c.Reader.Schema(c.ctx, kind)
	if err != nil || s.NonNull == nil {
		return diff.NewType(nil, kind)
	}
	return diff.NewType(s.NonNull(), kind)
}

func (c *converter) root(r *rule) place {
	return place{root: "object", plain: expr.Name("object"), types: c.types(r.typed())}
}

// alwaysThere are the places that exist in all valid objects of some kinds.
func alwaysThere(kinds []schema.GroupVersionKind) []string {
	out := ""
	for i, k := range kinds {
		spec := strings.Join(jmespath.PodSpecPath(k.GroupKind()), ".")
		switch {
		case spec == "":
			return nil
		case i == 0:
			out = spec + ".containers"
		case out != spec+".containers":
			out = "spec" // the only common place
		}
	}
	if out == "" {
		return nil
	}
	return []string{out}
}

// kindsOf are the kinds of a rule; none if it also has others.
func (r *rule) kindsOf() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, rule := range r.rules {
		if len(rule.kinds) == 0 {
			return nil
		}
		out = append(out, rule.kinds...)
	}
	return out
}

func (c *converter) scope(r *rule, targets bool) *scope {
	sure := alwaysThere(r.kindsOf())
	o := translate.Options{
		Kinds: c.types(r.typed()), Namespace: r.namespace, Sure: sure,
		Triggers: targets, Deleted: r.onlyDeleted(),
	}
	if c.To == MutatingAdmissionPolicy {
		o.Language = translate.MutatingAdmissionPolicy
	}
	return &scope{Scope: translate.NewScope(o), always: sure, needs: &[]expr.Expr{}}
}

// onlyDeleted reports whether the rule matches only DELETE requests.
func (r *rule) onlyDeleted() bool {
	return !slices.ContainsFunc(r.rules,
		func(rule resourceRule) bool { return !slices.Equal(rule.Operations, []string{"DELETE"}) })
}

// lists describes how the lists of the rule's kinds merge.
func (c *converter) lists(r *rule) []*patching.Lists {
	var out []*patching.Lists
	for _, gvk := range r.typed() {
		s, err := c.Reader.Schema(c.ctx, gvk)
		if err != nil {
			s = engine.Schema{}
		}
		out = append(out, patching.NewLists(s, gvk))
	}
	return out
}

func (c *converter) strategicMerge(r *rule, s *scope, patch map[string]any) []expr.Expr {
	m := merge{scope: s, lists: c.lists(r), used: map[string]bool{}}
	root := c.root(r)
	edits := m.fields(patch, root, &m.guards)
	if len(edits) == 0 {
		panic(refuseField("", "leave it out", "changes nothing"))
	}
	r.forms, r.changes = formsOf(edits, root), changed(edits)
	return m.guards
}

// formsOf are the forms of edits: an ApplyConfiguration followed by a JSON patch of the remainder, and a JSON
// patch alone.
func formsOf(edits []*edit, root place) [][]mutation {
	var forms [][]mutation
	if apply, patch := splitAll(edits); len(apply) > 0 {
		forms = [][]mutation{{{apply: true, cel: applyObject(apply, root)}}}
		if addVariables(apply) {
			forms[0][0].note = variablesLast
		}
		first := &operations{}
		if first.missing(apply); len(first.parts) > 0 {
			forms[0] = slices.Insert(forms[0], 0, mutation{cel: first.expr()})
		}
		if len(patch) > 0 {
			forms[0] = append(forms[0], mutation{cel: jsonPatch(patch)})
		}
	}
	return append(forms, []mutation{{cel: jsonPatch(edits)}})
}

func jsonPatch(edits []*edit) expr.Expr {
	o := &operations{}
	o.edits(edits)
	return o.expr()
}
