package test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fix/edit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// judge compares the results of a test with its runs, by operation.
type judge struct {
	*suite
	runs map[engine.Operation]*run
	out  []output.Tested
	// wantedBy has the documents of wanted objects that are the only reason of a failure, by its Difference.
	wantedBy map[*engine.Change]*engine.Document
}

// add adds the outcome of a result.
func (j *judge) add(r *result, t output.Tested) {
	t.Test, t.Origin, t.Wanted = j.name, r.origin(), r.want
	if t.Rule == (engine.RuleRef{}) {
		t.Rule = r.ref()
	}
	j.out = append(j.out, t)
}

// result judges one result on all of its objects.
func (j *judge) result(ctx context.Context, r *result) {
	if why := j.notOurs(r); why != "" {
		j.add(r, output.Tested{Verdict: output.NotTested, Text: why, Foreign: true})
		return
	}
	stand := j.standsFor(r)
	switch found := slices.ContainsFunc(j.policies, func(d engine.Document) bool {
		return isPolicy(r.policy)(refOf(d))
	}); {
	case !found:
		var names []string
		for _, d := range j.policies {
			names = append(names, d.Key.Name)
		}
		text := fmt.Sprintf("there is no policy %s in the files of the test", r.policy)
		j.add(r, output.Tested{Verdict: output.NotRun, Text: text + didYouMean(r.policy, names)})
		return
	case j.isBroken(r.policy, stand):
		j.add(r, output.Tested{Verdict: output.NotRun, Text: "the policy does not compile"})
		return
	}
	if text := j.lacks(r); text != "" {
		j.add(r, output.Tested{Verdict: output.NotRun, Text: text})
		return
	}
	if stand != nil && len(stand.policies) == 0 {
		j.add(r, output.Tested{Verdict: output.NotTested, Text: "no policy of --with stands in for it"})
		return
	}
	groups, missing := j.objectsOf(r)
	for _, text := range missing {
		j.add(r, output.Tested{Verdict: output.NotRun, Text: text})
	}
	before, named := len(j.out)-len(missing), len(r.names)+len(r.specs) > 0
	for _, keys := range groups {
		first := len(j.out)
		var others []output.Tested // of rules that do not match
		for _, key := range keys {
			if none := (&check{j, r, j.runs[r.operation], stand}).object(ctx, key); none != nil {
				others = append(others, *none)
			}
		}
		if r.want == "skip" || named && len(j.out) == first { // one of several objects of a name is enough
			for _, none := range others {
				j.add(r, none)
			}
		}
	}
	if len(j.out) == before {
		j.add(r, output.Tested{Verdict: output.TestFailed, Text: "the rule matches none of the objects, so nothing is tested"})
	}
}

func refOf(d engine.Document) engine.RuleRef {
	if d.Key.Namespace != "" {
		return engine.RuleRef{Policy: d.Key.Namespace + "/" + d.Key.Name}
	}
	return engine.RuleRef{Policy: d.Key.Name}
}

func (j *judge) isBroken(policy string, stand *standing) bool {
	if stand != nil {
		return slices.ContainsFunc(stand.policies, func(d engine.Document) bool { return j.broken[d.Key.Name] })
	}
	_, name, found := strings.Cut(policy, "/")
	return j.broken[policy] || found && j.broken[name]
}

// notOurs says why a result is for a rule that does not mutate; empty if it does, or there is no such
// policy.
func (s *suite) notOurs(r *result) string {
	if r.other != "" {
		return r.other
	}
	does, mutates, found := "", false, false
	for _, d := range s.policies {
		if !isPolicy(r.policy)(refOf(d)) {
			continue
		}
		found = true
		rules, _ := d.Field("spec", "rules").([]any)
		mutates = mutates || len(rules) == 0
		for _, raw := range rules {
			rule, _ := raw.(map[string]any)
			mutates = mutates || rule["mutate"] != nil
			if name, _ := rule["name"].(string); name != written(r.rule) || rule["mutate"] != nil {
				continue
			}
			for _, other := range []string{"validate", "generate", "verifyImages"} {
				if rule[other] != nil {
					does = "it is of a rule with " + other
				}
			}
		}
	}
	switch {
	case does != "":
		return does
	case found && !mutates:
		return "no rule of the policy mutates"
	}
	for _, d := range s.other {
		if !found && isPolicy(r.policy)(refOf(d)) {
			return "it is of a " + d.Key.Kind
		}
	}
	return ""
}

// written returns the name of the rule that an autogen rule is derived from.
func written(rule string) string {
	return strings.TrimPrefix(strings.TrimPrefix(rule, "autogen-"), "cronjob-")
}

// lacks says that the policy has no rule with the name in a result; empty if it has.
func (j *judge) lacks(r *result) string {
	var names []string
	for _, d := range j.policies {
		own := rulesOf(d)
		if isPolicy(r.policy)(refOf(d)) &&
			(r.rule == "" || len(own) == 0 || slices.Contains(own, written(r.rule)) || slices.Contains(own, r.rule)) {
			return ""
		}
		names = append(names, own...)
	}
	return fmt.Sprintf("the policy has no rule %s that mutates", r.rule) + didYouMean(r.rule, names)
}

// didYouMean suggests the nearest of some names, if any.
func didYouMean(name string, among []string) string {
	if meant := engine.Nearest(name, slices.Values(among)); meant != "" {
		return fmt.Sprintf("; did you mean %s?", meant)
	}
	return ""
}

// objectsOf returns the objects that a result is about: those of each name, or all; if possible of its kind.
// Missing describes the named objects that do not exist.
func (j *judge) objectsOf(r *result) (groups [][]engine.ObjectKey, missing []string) {
	all := j.named
	kind := r.kind[strings.LastIndexByte(r.kind, '/')+1:]
	add := func(keys []engine.ObjectKey) {
		other := func(k engine.ObjectKey) bool { return k.Kind != kind }
		if ofKind := slices.DeleteFunc(slices.Clone(keys), other); len(ofKind) > 0 {
			keys = ofKind
		}
		groups = append(groups, keys)
	}
	want := func(p place, is func(engine.ObjectKey) bool) {
		var keys []engine.ObjectKey
		for _, key := range all {
			if is(key) {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			add(keys)
		} else {
			var names []string
			for _, key := range all {
				names = append(names, key.Name, strings.TrimPrefix(key.Namespace+"/"+key.Name, "/"))
			}
			missing = append(missing, fmt.Sprintf("no object of the test is called %s", p.text)+didYouMean(p.text, names))
		}
	}
	for _, p := range r.names {
		namespace, name, found := strings.Cut(p.text, "/")
		if !found {
			namespace, name = "", p.text
		}
		want(p, func(k engine.ObjectKey) bool {
			return (k.Name == name || k.Place().Name == name) && (!found || k.Namespace == namespace)
		})
	}
	for _, s := range r.specs {
		want(s.place, func(k engine.ObjectKey) bool {
			return (k.Name == s.text || k.Place().Name == s.text) && k.Group == s.group &&
				(s.version == "" || k.Version == s.version) && (s.kind == "" || k.Kind == s.kind) &&
				(k.Namespace == s.namespace || s.namespace == "" && k.Namespace == defaultNamespace)
		})
	}
	if len(r.names)+len(r.specs) == 0 {
		add(all)
	}
	return groups, missing
}

// check is a result with what is tested for it.
type check struct {
	*judge
	want  *result
	run   *run
	stand *standing // nil for the policy itself
}

// object judges a result on one object. It returns the outcome if no rule matches the object, else nil.
func (c *check) object(ctx context.Context, key engine.ObjectKey) *output.Tested {
	r, ofPolicy := c.want, isPolicy(c.want.policy)
	if c.stand != nil {
		ofPolicy = func(ref engine.RuleRef) bool { return isOneOf(c.stand.policies, ref) }
	}
	byRule := map[engine.RuleRef][]engine.Step{}
	var order []engine.RuleRef
	var none engine.Step // of a rule that does not match
	for _, step := range c.run.steps(key, func(ref engine.RuleRef) bool {
		return ofPolicy(ref) && wants(r, ref)
	}) {
		rule := step.Rule
		rule.Via = ""
		if rule.Dialect != kyvernoRules { // these policies have one result
			rule.Rule = ""
			if c.stand != nil { // together they replace the rule
				rule = engine.RuleRef{Dialect: rule.Dialect}
			}
		}
		if step.Outcome == engine.NotMatched {
			if none.Err == nil || aboutKinds(&none) && !aboutKinds(&step) {
				none = step
				none.Rule.Via = ""
			}
			continue
		}
		if byRule[rule] == nil {
			order = append(order, rule)
		}
		byRule[rule] = append(byRule[rule], step)
	}
	if len(order) == 0 {
		t := output.Tested{Object: key, Rule: none.Rule, Got: "no match", Reason: reason(&none)}
		if t.Verdict = output.TestPassed; r.want != "skip" {
			t.Verdict, t.Text = output.TestFailed, "the rule does not match the object"
			t.Note = "Kyverno's command counts this as passed (Excluded)"
		}
		return &t
	}
	for _, rule := range order {
		step := worst(byRule[rule])
		t := output.Tested{Object: key, Rule: rule, Got: status(step, c.stand), Reason: reason(step)}
		if t.Rule.Policy == "" {
			t.Rule = step.Rule
		}
		c.compare(ctx, &t, step)
		c.add(r, t)
	}
	return nil
}

// aboutKinds reports whether a rule does not match because of the object's kind, which says little about
// autogen rules.
func aboutKinds(s *engine.Step) bool {
	return s.Err == nil || strings.HasPrefix(s.Err.Error(), "kinds:")
}

// kyvernoRules is the language in which each rule has its own result.
const kyvernoRules = "kyverno"

// wants reports whether a result is about a rule, or a rule derived from it. Rules of other languages have
// no names.
func wants(r *result, ref engine.RuleRef) bool {
	return r.rule == "" || ref.Dialect != kyvernoRules ||
		slices.Contains([]string{r.rule, "autogen-" + r.rule, "autogen-cronjob-" + r.rule}, ref.Rule)
}

// order lists outcomes, the worst first: the worst one counts.
//
//nolint:gochecknoglobals // an immutable table
var order = []engine.Outcome{
	engine.Unsupported, engine.Denied, engine.Failed, engine.Changed,
	engine.Unchanged, engine.Skipped,
}

func worst(steps []engine.Step) *engine.Step {
	out := &steps[0]
	for i := range steps {
		if slices.Index(order, steps[i].Outcome) < slices.Index(order, out.Outcome) {
			out = &steps[i]
		}
	}
	return out
}

// status returns Kyverno's word for an outcome. If there is nothing to change, a CEL policy passes, and a
// rule of a ClusterPolicy, or its stand-in, is skipped.
func status(s *engine.Step, stand *standing) string {
	switch s.Outcome {
	case engine.Changed:
		return "pass"
	case engine.Unchanged:
		if s.Rule.Dialect == kyvernoRules || stand != nil {
			return "skip"
		}
		return "pass"
	case engine.Failed, engine.Denied:
		return "error"
	case engine.Unsupported, engine.Skipped, engine.NotMatched, engine.AsCreated:
	}
	if s.Outcome == engine.Unsupported {
		return string(engine.Unsupported)
	}
	return "skip"
}

// reason returns why a rule did not act.
func reason(s *engine.Step) string {
	switch {
	case s.Outcome == engine.Changed || s.Err == nil:
		return ""
	case s.Confidential:
		return engine.ErrHidden.Error()
	}
	return s.Err.Error()
}

// compare judges a rule on an object by its status and by the resulting object.
func (c *check) compare(ctx context.Context, t *output.Tested, step *engine.Step) {
	r, stand := c.want, c.stand
	switch {
	case step.Outcome == engine.Unsupported:
		t.Verdict, t.Text = output.NotRun, "the rule cannot be evaluated here"
		return
	case stand != nil && stand.whole && r.want == "skip" && t.Got == "pass":
		t.Verdict, t.Text = output.NotTested, "the policy of --with also does what other rules of the policy do, so that the skip cannot be tested"
	case t.Got != r.want:
		t.Verdict, t.Text = output.TestFailed, fmt.Sprintf("wanted %s, got %s", r.want, t.Got)
		if step.Outcome == engine.Unchanged {
			t.Text += ": the object has what the rule writes"
		}
	default:
		t.Verdict = output.TestPassed
	}
	if r.patched.text == "" || t.Got == "error" {
		return
	}
	got := c.run.after(t.Object, step.Rule.Dialect, func(ref engine.RuleRef) bool {
		if stand != nil {
			return isOneOf(stand.all, ref)
		}
		return isPolicy(r.policy)(ref)
	})
	if got == nil {
		return
	}
	wanted := c.wanted(r, got)
	before := c.run.changes[t.Object.Named()].Before
	switch {
	case wanted == nil && r.mustHave && t.Verdict == output.TestPassed:
		t.Verdict, t.Text = output.TestFailed, fmt.Sprintf("%s has no %s", r.patched.text, t.Object)
		return
	case wanted == nil && t.Verdict == output.TestPassed && !diff.Same(before.Object, got.Object):
		t.Verdict, t.Text = output.NotTested, fmt.Sprintf("%s has no %s, so that what came out is not compared", r.patched.text, t.Object)
		t.Note = "failOnMissingResources makes that a failure"
		return
	case wanted == nil:
		if t.Verdict == output.TestFailed {
			t.Note = fmt.Sprintf("Kyverno's command does not check this, since %s has no %s", r.patched.text, t.Object)
		}
		return
	}
	c.difference(ctx, t, wanted, got)
}

// nameOf returns the name of an object, or the prefix of the name that a server would make.
func nameOf(u *unstructured.Unstructured) string { return cmp.Or(u.GetName(), u.GetGenerateName()) }

// wanted returns the wanted object in the file, or nil.
func (j *judge) wanted(r *result, got *unstructured.Unstructured) *engine.Document {
	for _, d := range j.patched[r.patched.text] {
		u := d.Object()
		if u.GetAPIVersion() == got.GetAPIVersion() && u.GetKind() == got.GetKind() && nameOf(u) == nameOf(got) &&
			(u.GetNamespace() == got.GetNamespace() || u.GetNamespace() == "" &&
				got.GetNamespace() == defaultNamespace) {
			return &d
		}
	}
	return nil
}

// difference compares an object with the wanted one as Kyverno's command does: without nulls, empty mappings
// and empty lists.
func (c *check) difference(ctx context.Context, t *output.Tested, wanted *engine.Document,
	got *unstructured.Unstructured,
) {
	want := tidied(wanted.Object())
	want.SetNamespace(got.GetNamespace())
	is := tidied(got)
	typ := diff.TypeOf(ctx, c.objects, got.GroupVersionKind())
	fields := diff.Compare(want.Object, is.Object, typ)
	if c.stand != nil { // as in compare
		fields = slices.DeleteFunc(fields, func(f engine.FieldChange) bool {
			return f.Kind == engine.Moved && !orderCounts(f.Path)
		})
	}
	if len(fields) == 0 {
		return
	}
	change := c.run.changes[t.Object.Named()]
	between := &engine.Change{
		Subject: t.Object, Before: want, After: is, Fields: fields, Steps: change.Steps,
		Target: engine.Target{Key: t.Object, Object: want},
	}
	evaluation.Conceal(between)
	t.Difference = between
	t.Places = []string{wanted.Origin}
	for i := range fields {
		place := wanted.Origin
		if wanted.Line != nil {
			e := engine.CompileError{Origin: wanted.Origin, Line: wanted.Line(edit.Field(want.Object, fields[i].Path))}
			place = e.Place()
		}
		t.Places = append(t.Places, place)
	}
	if t.Verdict == output.TestPassed {
		t.Verdict, t.Text = output.TestFailed, "the object that came out is not the wanted one"
		c.wantedBy[between] = wanted
	}
}

// orderCounts reports whether the position of an element in a keyed list matters.
func orderCounts(p fieldpath.Path) bool {
	return slices.ContainsFunc(p, func(e fieldpath.PathElement) bool {
		return e.FieldName != nil && (*e.FieldName == "env" || *e.FieldName == "initContainers")
	})
}

// tidied returns a copy of an object without nulls, empty mappings and empty lists.
func tidied(u *unstructured.Unstructured) *unstructured.Unstructured {
	object, _ := tidy(u.Object).(map[string]any) // it has a kind
	return &unstructured.Unstructured{Object: object}
}

func tidy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for name := range out {
			if out[name] = tidy(out[name]); out[name] == nil {
				delete(out, name)
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		var out []any
		for _, item := range v {
			if item = tidy(item); item != nil {
				out = append(out, item)
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	}
	return v
}
