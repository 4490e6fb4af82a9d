// Package convert converts the mutate rules of Kyverno's ClusterPolicies and Policies to CEL policies:
// MutatingPolicies, or Kubernetes' MutatingAdmissionPolicies.
//
// A rule is lowered to conditions and edits, and printed in several forms, the simplest first: an
// ApplyConfiguration if it can express the edit, else a JSON patch. The caller finds the equivalent form with
// package compare. A Refusal describes anything that the new language cannot express.
package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
)

// Target is the language of the new policies.
type Target string

// The languages.
const (
	MutatingPolicy          Target = "mutatingpolicy"          // Kyverno's
	MutatingAdmissionPolicy Target = "mutatingadmissionpolicy" // Kubernetes' own
)

// Options control a conversion.
type Options struct {
	To Target
	// Mapper maps kinds to resources, and Reader has their schemas.
	Mapper meta.RESTMapper
	Reader engine.Reader
	// Documents contains the PolicyExceptions, among others.
	Documents []engine.Document
	// ReplicationControllers keeps autogen's rules for them, which a MutatingPolicy's autogen lacks.
	ReplicationControllers bool
	// Taken are the names of other new policies, as in Form.Names.
	Taken map[string]bool
}

// Conversion has the forms that a policy can be converted to.
type Conversion struct {
	Refusals []*Refusal
	document engine.Document
	rules    []*rule
	options  Options
	one      bool // no rule applies after one that changed the object
	without  bool // rules for ReplicationControllers
}

// autogenAnnotation names the controllers that autogen derives rules for.
const autogenAnnotation = "pod-policies.kyverno.io/autogen-controllers"

// withAutogenOf limits a policy's autogen to some controllers.
func withAutogenOf(d engine.Document, controllers string) engine.Document {
	object := d.Object().DeepCopy()
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[autogenAnnotation] = controllers
	object.SetAnnotations(annotations)
	out := engine.NewDocument(object, d.Origin)
	out.Line = d.Line
	return out
}

// Accepts reports whether a document is a convertible policy.
func Accepts(d engine.Document) bool {
	return new(kyverno.Dialect).Accepts(d.Key.GroupKind) == engine.Policy
}

// Describe describes the rules of a convertible policy.
func Describe(d engine.Document) []engine.Description {
	program, err := new(kyverno.Dialect).Compile(engine.Compilation{
		Documents: []engine.Document{d},
		Warn:      func(engine.CompileError) {},
	})
	if err != nil || program == nil {
		return nil
	}
	return program.Describe()
}

// Convert converts the mutate rules of a policy.
func Convert(ctx context.Context, d engine.Document, o Options) *Conversion {
	_, limited := d.Object().GetAnnotations()[autogenAnnotation]
	without := !limited && !o.ReplicationControllers
	if without {
		d = withAutogenOf(d, "CronJob,DaemonSet,Deployment,Job,ReplicaSet,StatefulSet")
	}
	c := &converter{Options: o, document: d, ctx: ctx}
	out := &Conversion{document: d, options: o, without: without}
	if text, _, _ := unstructured.NestedString(d.Object().Object, "spec", "applyRules"); text == "One" {
		out.one = true
	}
	written := kyverno.WrittenRules(d)
	if d.Key.Name == "" && len(written) > 0 {
		out.Refusals = []*Refusal{{Field: "metadata.name", Reason: "is missing, so that the new policy would have none", Instead: "give it one"}}
		return out
	}
	refused, unknown := map[int]bool{}, unknownFields(d, written)
	for _, w := range written {
		if refused[w.Index] {
			continue
		}
		if r := cmp.Or(unknown[wholePolicy], unknown[w.Index]); r != nil {
			refused[w.Index] = true
			out.Refusals = append(out.Refusals, c.refusal(w, r))
			continue
		}
		for part := range parts(w) {
			r, err := c.convert(w, part)
			if err != nil {
				refused[w.Index] = true
				out.Refusals = append(out.Refusals, c.refusal(w, err))
				break
			}
			c.rules = append(c.rules, r)
		}
	}
	out.rules = slices.DeleteFunc(c.rules, func(r *rule) bool { return refused[r.index] })
	if out.one {
		out.onlyFirst()
	}
	return out
}

// parts is the number of policies that a rule becomes: one for each target.
func parts(w kyverno.WrittenRule) int {
	mutate, _ := w.Fields["mutate"].(map[string]any)
	targets, _ := mutate["targets"].([]any)
	return max(1, len(targets))
}

func (c *converter) convert(w kyverno.WrittenRule, part int) (r *rule, err error) {
	err = engine.Guard(func() error {
		if refusal := refusalOf(func() { r = c.rule(w, part) }); refusal != nil {
			return refusal
		}
		return nil
	})
	return r, err
}

func (c *converter) refusal(w kyverno.WrittenRule, err error) *Refusal {
	out := &Refusal{Reason: err.Error()}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		copied := *refusal
		out = &copied
	}
	out.Rule, _ = w.Fields["name"].(string)
	if line := c.document.Line; line != nil && out.Line == 0 && out.Field != "" {
		field := out.Field
		if !strings.HasPrefix(field, "spec.") {
			field = fmt.Sprintf("spec.rules[%d].%s", w.Index, field)
		}
		out.Line = line(field)
	}
	return out
}

// Rules returns the names of the converted rules, as in the policy.
func (c *Conversion) Rules() []string {
	var out []string
	for _, r := range c.rules {
		if !r.derived && r.part == 0 {
			out = append(out, r.name)
		}
	}
	return out
}

// Notes returns differences between new and old rules that the objects at hand need not show.
func (c *Conversion) Notes() []string {
	var out []string
	if c.leavesOut() {
		out = append(out, "ReplicationControllers are left out, for which the old policy has rules, too; --replication-controllers keeps them")
	}
	written := slices.DeleteFunc(slices.Clone(c.rules), func(r *rule) bool { return r.derived })
	for _, r := range written {
		for _, note := range r.notes {
			out = append(out, "rule "+r.name+": "+note)
		}
	}
	return engine.Distinct(append(out, apart(slices.DeleteFunc(written, func(r *rule) bool {
		return r.existing != nil
	}))...))
}

// apart returns notes about rules for overlapping kinds that become separate policies.
func apart(rules []*rule) []string {
	var out []string
	policies := numbered(rules)
	for i, r := range rules {
		for j, later := range rules[i+1:] {
			if policies[i] != policies[i+1+j] && r.sharesKind(later) {
				out = append(out, "rules "+r.name+" and "+later.name+" become two policies for some of the same kinds, which are evaluated in no defined order; "+
					"the second rule saw what the first one writes")
			}
		}
	}
	return out
}

// Inseparable reports whether each rule depends on the others.
func (c *Conversion) Inseparable() bool { return c.one && len(c.Rules()) > 1 }

// Only returns the conversion of the rules that wanted selects.
func (c *Conversion) Only(wanted func(rule string) bool) *Conversion {
	out := *c
	kept := map[int]bool{}
	for _, r := range c.rules {
		kept[r.index] = kept[r.index] || !r.derived && wanted(r.name)
	}
	out.rules = slices.DeleteFunc(slices.Clone(c.rules), func(r *rule) bool { return !kept[r.index] })
	out.Refusals = slices.DeleteFunc(slices.Clone(c.Refusals), func(r *Refusal) bool { return !wanted(r.Rule) })
	return &out
}

// Old returns the policy with only the converted rules.
func (c *Conversion) Old() *unstructured.Unstructured {
	kept, derived := map[int]bool{}, false
	for _, r := range c.rules {
		kept[r.index], derived = true, derived || r.derived
	}
	whole := maps.Clone(c.document.Object().Object)
	if spec, ok := whole["spec"].(map[string]any); ok {
		spec = maps.Clone(spec)
		all, _ := spec["rules"].([]any)
		var rules []any
		for i, raw := range all {
			if kept[i] {
				rules = append(rules, raw)
			}
		}
		spec["rules"], whole["spec"] = rules, spec
	}
	out := engine.NewDocument((&unstructured.Unstructured{Object: whole}).DeepCopy(), c.document.Origin)
	if !derived { // another rule may have kept the policy from having one
		out = withAutogenOf(out, "none")
	}
	return out.Object()
}

// Whole returns Old with the rules for ReplicationControllers, if the new policies leave them out; else nil.
func (c *Conversion) Whole() *unstructured.Unstructured {
	if !c.leavesOut() {
		return nil
	}
	old := c.Old()
	unstructured.RemoveNestedField(old.Object, "metadata", "annotations", autogenAnnotation)
	return old
}

// leavesOut reports whether the new policies leave out rules for ReplicationControllers.
func (c *Conversion) leavesOut() bool {
	return c.without && slices.ContainsFunc(c.rules, func(r *rule) bool { return r.derived })
}

// Forms returns the ways to write the new policies, the simplest first: manifests, without comments.
func (c *Conversion) Forms() []*Form {
	var out []*Form
	add := func(policies []*policy) {
		f := &Form{policies: policies}
		same := func(other *Form) bool { return other.String() == f.String() }
		if len(policies) > 0 && !slices.ContainsFunc(out, same) {
			out = append(out, f)
		}
	}
	lines := func(policies []*policy) int { return strings.Count((&Form{policies: policies}).String(), "\n") }
	together, apart := c.policies(c.together(), false), c.policies(c.rules, true)
	add(c.withAutogen())
	if lines(together) < lines(apart) {
		add(together)
	}
	add(apart)
	add(c.policies(c.rules, false))
	add(together)
	return out
}

// Form is one way to write the new policies.
type Form struct{ policies []*policy }

// String returns the manifest.
func (f *Form) String() string {
	texts := make([]string, len(f.policies))
	for i, p := range f.policies {
		texts[i] = p.String()
	}
	return strings.Join(texts, "---\n")
}

// Names returns the names of the policies, with their namespaces.
func (f *Form) Names() []string {
	var out []string
	for _, p := range f.policies {
		out = append(out, p.key())
	}
	return out
}

// Needs returns the first version with all fields of the policies: of Kubernetes for
// MutatingAdmissionPolicies, else of Kyverno (v1 of MutatingPolicy: 1.17; targetMatchConditions: 1.19).
func (f *Form) Needs() string {
	needs := "Kyverno 1.17"
	for _, p := range f.policies {
		if p.admission {
			return "Kubernetes 1.36"
		}
		if p.existing != nil && len(p.existing.conditions) > 0 && !p.existing.self {
			needs = "Kyverno 1.19 (targetMatchConditions)"
		}
	}
	return needs
}

// spelledAlike normalizes field accesses.
var spelledAlike = strings.NewReplacer("?", "", `["`, ".", `"]`, "") //nolint:gochecknoglobals // immutable

// Reads returns a function that reports whether the expressions read a field of the object or its Pod
// template, in the notation of engine.Description: metadata.labels."a.b/c", spec.containers[].image.
func (f *Form) Reads() func(field string) bool {
	text := spelledAlike.Replace(f.String())
	return func(field string) bool {
		field = strings.ReplaceAll(field, `"`, "")
		list, _, _ := strings.Cut(field, "[")
		found := func(of, name string) bool { // as a whole, or with a method
			return regexp.MustCompile(of + `\.` + regexp.QuoteMeta(name) + `([^\w./-]|\.\w+\(|$)`).MatchString(text)
		}
		if !strings.Contains(text, list) || !found(`\b(object|pod|template)`, list) {
			return false
		}
		last := field[strings.LastIndexAny(field, ".]")+1:]
		return list == field || last == "" || found(`\b[a-z]`, last)
	}
}

// Comment puts lines above the first policy.
func (f *Form) Comment(lines ...string) {
	for _, p := range f.policies {
		p.comment = append(p.comment, lines...)
		return
	}
}

// grouped returns the applicable rules, grouped by selected kinds.
func grouped(rules []*rule) [][]*rule {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r *rule) bool { return r.never })
	var groups [][]*rule
	for i, n := range numbered(rules) {
		if n == len(groups) {
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], rules[i])
	}
	return groups
}

// numbered numbers the rules from 0. Rules that can be mutations of one policy share a number.
func numbered(rules []*rule) []int {
	out, known, next := make([]int, len(rules)), map[string]int{}, 0
	for i, r := range rules {
		constraints := r.selected() + fmt.Sprint(r.param)
		n, ok := known[constraints]
		if !ok || r.existing != nil {
			n, next = next, next+1
		}
		if r.existing == nil {
			known[constraints] = n
		}
		out[i] = n
	}
	return out
}

// policies groups the rules into policies by selected kinds, in their simplest or their last forms.
func (c *Conversion) policies(rules []*rule, simplest bool) []*policy {
	groups := grouped(rules)
	var out []*policy
	own := map[string]bool{}
	for _, g := range groups {
		p := c.policy(g, simplest)
		if p == nil {
			return nil
		}
		if len(groups) > 1 {
			p.name = c.nameOf(g)
		}
		if len(out) > 0 { // already in the first one
			delete(p.annotations, "policies.kyverno.io/description")
		}
		for i, name := 2, p.name; c.options.Taken[p.key()] || own[p.key()]; i++ {
			p.name = shorten(fmt.Sprintf("%s-%d", name, i))
		}
		own[p.key()] = true
		out = append(out, p)
	}
	return out
}

// nameOf names one of several policies.
func (c *Conversion) nameOf(g []*rule) string {
	name := c.document.Key.Name
	in := map[int]bool{}
	for _, r := range g {
		in[r.index] = true
	}
	first := g[0]
	if slices.ContainsFunc(c.rules, func(r *rule) bool { return !in[r.index] }) {
		written := c.rules[slices.IndexFunc(c.rules, func(r *rule) bool { return r.index == first.index })].name
		name = strings.TrimSuffix(name+"-"+dns(written), "-")
	}
	switch {
	case first.derived && len(first.rules) == 1 && len(first.rules[0].Resources) == 1:
		name += "-" + first.rules[0].Resources[0]
	case first.derived:
		name += "-controllers"
	}
	if first.part > 0 {
		name = fmt.Sprintf("%s-%d", name, first.part+1)
	}
	return shorten(name)
}

// dns turns a string into a part of an object's name.
func dns(text string) string {
	return strings.Trim(strings.Join(words.FindAllString(strings.ToLower(text), -1), "-"), "-")
}

func shorten(name string) string {
	const most = 63
	if len(name) <= most {
		return name
	}
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, name)
	return strings.TrimRight(name[:most-9], "-.") + fmt.Sprintf("-%08x", sum.Sum32())
}

// selected is equal for rules that select the same kinds, operations and namespaces.
func (r *rule) selected() string { return fmt.Sprint(r.selection.rules, r.namespaces) }

// policy writes rules as one policy, or returns nil if their forms cannot be combined.
func (c *Conversion) policy(rules []*rule, simplest bool) *policy {
	object := c.document.Object()
	p := &policy{
		admission: c.options.To == MutatingAdmissionPolicy, name: object.GetName(), labels: object.GetLabels(),
		annotations: carried(object.GetAnnotations()), rules: rules[0].rules, namespaces: rules[0].namespaces,
		param: rules[0].param,
	}
	if !p.admission {
		p.namespace = rules[0].policyNamespace
	}
	p.failurePolicy, _ = ofWebhook(object, "failurePolicy", "failurePolicy").(string)
	p.timeout = ofWebhook(object, "timeoutSeconds", "webhookTimeoutSeconds")
	var common []expr.Expr
	// Kyverno 1.19 ignores their matchConditions
	self := rules[0].existing != nil && rules[0].existing.self
	if !self && !slices.ContainsFunc(rules, func(r *rule) bool { return r.inside }) {
		common = shared(rules)
	}
	p.conditions = nameConditions(common)
	p.existing = rules[0].existing
	if c.one && len(rules) > 1 {
		m, ok := firstChange(rules, simplest, common)
		if !ok {
			return nil
		}
		p.mutations = []mutation{m}
	}
	for _, r := range rules {
		p.variables = addNamed(p.variables, r.variables...)
		if c.one && len(rules) > 1 {
			continue
		}
		when := without(slices.Concat(r.conditions, r.guards), common)
		moves := func(c expr.Expr) bool { // with a mutation's result, which the next ones see
			return expr.Mentions(c, expr.Name("object")) || p.admission && mentionsVariables(c)
		}
		form := r.form(simplest)
		if len(form) > 1 && slices.ContainsFunc(when, moves) {
			form = r.form(false)
		}
		for i, m := range form {
			if i == 0 {
				m.comment = "rule " + r.name
			}
			m.when = when
			known := slices.DeleteFunc(slices.Clone(common), func(c expr.Expr) bool {
				return p.existing != nil || len(p.mutations) > 0 && moves(c)
			})
			m.cel = expr.Given(m.cel, append(known, when...))
			p.mutations = append(p.mutations, m)
		}
	}
	return p
}

func (r *rule) form(simplest bool) []mutation {
	if simplest {
		return r.forms[0]
	}
	return r.forms[len(r.forms)-1]
}

func shared(rules []*rule) []expr.Expr {
	var out []expr.Expr
	for _, c := range slices.Concat(rules[0].conditions, rules[0].guards) {
		everywhere := !slices.ContainsFunc(rules, func(r *rule) bool {
			return !expr.Contains(r.conditions, c) && !expr.Contains(r.guards, c)
		})
		if everywhere && !expr.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// ofWebhook is a webhook setting of the policy, under the field's current or former name.
func ofWebhook(u *unstructured.Unstructured, field, before string) any {
	for _, path := range [][]string{{"spec", "webhookConfiguration", field}, {"spec", before}} {
		if v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...); v != nil {
			return v
		}
	}
	return nil
}

// carried are the annotations that the new policies keep.
func carried(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if key != autogenAnnotation && key != engine.LastApplied {
			out[key] = value
		}
	}
	return out
}
