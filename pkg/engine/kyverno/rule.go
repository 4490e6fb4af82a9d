package kyverno

import (
	"errors"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

type rule struct {
	ref           engine.RuleRef
	written       string // the name in the policy, without the prefix of a derived rule
	policy        *policy
	match         *match.Block
	exclude       *match.Block // may be nil
	context       Entries
	preconditions *match.Conditions // may be nil
	mutation      mutation
	targets       []*target
	exceptions    []*exception
	gap           error     // an *engine.UnsupportedError if the rule can never be evaluated
	asksOperation bool      // the operation can decide whether the rule runs
	asksUser      asksUser  // where it reads the requesting user
	asksTrigger   bool      // the rule's effect on its targets depends on the trigger's content
	engineView    bool      // reports Kyverno's own result
	annotates     bool      // its targets get a line about the change
	notIdempotent string    // as in patchResult, for the context
	footprint     footprint // of the mutation
}

type ruleCompiler struct {
	policy *policy
	ref    engine.RuleRef
	gap    error

	given      []string // names to which the user gives values
	background bool     // Kyverno may process the policy without a request
	targets    bool     // a rule of the policy has targets
	template   bool     // a policy that looks like a template has been reported
}

// add compiles a rule; nil if it is broken or does not mutate.
func (c *ruleCompiler) add(n policydecode.Node) *rule {
	f := n.Fields()
	n.Rule = ruleName(f.Values)
	f.Rule = n.Rule
	if _, written := f.Values["mutate"]; !f.Has("mutate") &&
		(!written || f.Has("validate") || f.Has("generate") || f.Has("verifyImages")) {
		if !f.Has("validate") && !f.Has("generate") && !f.Has("verifyImages") { // mutate may be misspelt
			doneRule(f)
		}
		return nil
	}
	before := len(n.Report.Errs)
	if c.unrendered(n) {
		n.Fail("%s", engine.TemplateHint)
		return nil
	}
	r := c.compile(f)
	c.lintTexts(f)
	if len(n.Report.Errs) > before {
		return nil
	}
	r.lint(f, c.given)
	r.lintExclude(f.At("exclude"))
	return r
}

// unrendered reports whether a rule does not compile because it is a template.
func (c *ruleCompiler) unrendered(n policydecode.Node) bool {
	if !variables.Contains(n.Value, func(v any) bool { return engine.LooksLikeTemplate(stringOrEmpty(v)) }) {
		return false
	}
	before := len(n.Report.Errs)
	n = quietly(n)
	c.compile(n.Fields())
	return len(n.Report.Errs) > before
}

// derive compiles a rule for Pod controllers. It reports only errors, since its source has reported the rest.
func (c *ruleCompiler) derive(from policydecode.Node, fields map[string]any) *rule {
	n := quietly(from)
	n.Rule, n.Value = "", fields
	compiled := c.add(n)
	if from.Report.Errs = n.Report.Errs; compiled != nil {
		compiled.written = ruleName(from.Value)
	}
	return compiled
}

// quietly returns a node that discards warnings.
func quietly(n policydecode.Node) policydecode.Node {
	report := *n.Report
	report.Warn = func(engine.CompileError) {}
	n.Report = &report
	return n
}

func (c *ruleCompiler) compile(f *policydecode.Fields) *rule {
	r := &rule{ref: c.ref, policy: c.policy, gap: c.gap}
	r.ref.Rule = f.At("name").Text()
	r.written = r.ref.Rule
	if r.ref.Rule == "" {
		f.At("name").Lint("the rule has no name, so reports cannot distinguish it from others")
	}
	if !f.Has("match") {
		f.At("match").Fail("is missing, so the rule can never apply")
	}
	before := len(f.Report.Errs)
	r.match = match.Decode(f.At("match"))
	if f.Has("exclude") {
		r.exclude = match.Decode(f.At("exclude"))
	}
	if len(f.At("celPreconditions").List()) > 0 {
		f.At("celPreconditions").Fail("are for validate.cel rules only")
	}
	r.context = DecodeEntries(f.At("context"))
	r.notIdempotent = r.context.NotIdempotent()
	r.preconditions = match.DecodeConditions(f.At("preconditions"))
	r.decodeMutate(f, len(f.Report.Errs) > before)
	r.asksOperation = variables.Mentions(f.Values, "request.operation") || r.match.AsksOperation() ||
		r.exclude.AsksOperation()
	r.asksUser = asksUser{early: readsUser(f.Values["preconditions"]), late: readsUser(f.Values["mutate"]) ||
		readsUser(f.Values["context"])}
	doneRule(f)
	return r
}

func doneRule(f *policydecode.Fields) {
	f.Elsewhere("below mutate, so indent it", "patchStrategicMerge", "patchesJson6902", "foreach", "targets")
	f.Accept("name", "match", "exclude", "context", "preconditions", "celPreconditions", "mutate", "validate",
		"generate",
		"verifyImages", "imageExtractors", "skipBackgroundRequests", "reportProperties", "description")
	f.Done()
}

// decodeMutate reads the rule's mutation; broken means that other errors have been reported.
func (r *rule) decodeMutate(f *policydecode.Fields, broken bool) {
	m := f.At("mutate").Fields()
	targets := m.At("targets").List()
	for _, n := range targets {
		r.targets = append(r.targets, decodeTarget(n))
	}
	lintTargetKinds(m.At("targets"), r.targets)
	rest := map[string]any{}
	for _, key := range []string{"name", "match", "exclude", "context", "preconditions"} {
		if !broken {
			rest[key] = f.Values[key]
		}
	}
	r.mutation = decodeMutation(m, rest)
	if r.footprint.add(m.Values); len(targets) > 0 {
		r.footprint.write([]string{"metadata", "annotations", engine.AppliedPatches}, true)
	}
	r.asksTrigger = m.Has("foreach") || variables.Used(diff.Without(m.Values, "targets")) ||
		variables.Used(rest) ||
		slices.ContainsFunc(targets, func(n policydecode.Node) bool {
			t := mapping(n.Value)
			return variables.Used(t["context"]) || variables.Used(t["preconditions"])
		})
	m.Elsewhere("beside mutate", "preconditions", "context", "match", "exclude", "name")
	m.Accept("mutateExistingOnPolicyUpdate", "patchStrategicMerge", "patchesJson6902", "foreach", "overlay",
		"patches")
	m.Done()
}

func (r *rule) lint(f *policydecode.Fields, given []string) {
	if objects, _ := engine.TellObjects(r.match.Requests("")); r.match.OnlySubresources() &&
		(len(r.targets) == 0 || len(objects) == 0) {
		f.At("match").Lint("only matches requests to a subresource, which are not live objects")
	}
	if !r.lintEvent(f, given) && len(r.targets) > 0 {
		r.lintInstall(f.At("mutate").Fields().At("mutateExistingOnPolicyUpdate"))
	}
	r.lintWide(f)
}

// lintWide notes a target that covers all objects of a kind, though the rule matches it only in some
// namespaces.
func (r *rule) lintWide(f *policydecode.Fields) {
	for i, t := range r.targets {
		if t.own == "" && t.written["namespace"]+t.written["name"] == "" && t.labels == nil &&
			t.preconditions == nil && r.match.Narrows(t.written["kind"]) {
			f.At("mutate").Fields().At("targets").List()[i].Note("changes every %s of the cluster: match only says what triggers the rule; "+
				`namespace: "{{ request.object.metadata.namespace }}" keeps to the namespace of the trigger`, t.written["kind"])
		}
	}
}

// lintInstall warns of a rule with targets that the cluster's Kyverno would not run on installation, where
// requests have no operation (pkg/policy/mutate.go): here every live trigger counts.
func (r *rule) lintInstall(n policydecode.Node) {
	onInstall := r.policy.mutateOnUpdate
	if n.Value != nil {
		onInstall = n.Bool()
	}
	switch {
	case !onInstall:
		n.Note("is not true: the cluster's Kyverno waits for an event on a trigger, but here the rule runs for every existing trigger")
	case r.match.AsksOperation():
		n.Lint("is true, but the cluster's Kyverno does not run a rule whose match names operations when the policy is installed, and waits for an event on a trigger; here the rule runs for every existing trigger")
	}
}

func ruleName(raw any) string { return stringOrEmpty(mapping(raw)["name"]) }

// asksUser is where a rule reads request.userInfo: in its preconditions (early), or only after them (late).
type asksUser struct{ early, late bool }

func readsUser(part any) bool { return variables.Mentions(part, "request.userInfo") }

// unknownUser returns an *engine.UnsupportedError if the rule uses an unspecified requesting user.
func (e *execution) unknownUser(asks bool) error {
	if !asks || mapping(e.given["request"])["userInfo"] != nil || !e.matched.Request.User.Empty() {
		return nil
	}
	return &engine.UnsupportedError{Field: "request.userInfo", Err: errors.New("the rule uses request user information, which --request-user and --request-group give")}
}
