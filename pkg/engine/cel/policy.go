package cel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Source is an expression as a policy has it: a variable, a match condition, a mutation, an annotation.
type Source struct {
	policydecode.Node        // of the expression
	Name, Text        string // a mutation has no name
	JSONPatch         bool   // of a mutation; else it is an apply configuration
	condition         bool   // it is a match condition
}

// DecodeNamed reads a list of names and expressions. Twice reports the second one of a name.
func DecodeNamed(n policydecode.Node, twice func(name policydecode.Node, x Source)) []Source {
	var out []Source
	known := map[string]bool{}
	for _, item := range n.List() {
		f := item.Fields()
		x := Source{Node: f.At("expression"), Name: f.At("name").Required()}
		x.Text = x.Required()
		f.Done()
		if x.Name != "" && known[x.Name] && twice != nil {
			twice(f.At("name"), x)
		}
		known[x.Name] = true
		out = append(out, x)
	}
	return out
}

// DecodePatches reads a list of mutations. Other, if it is set, reports the field of the other type of patch.
func DecodePatches(n policydecode.Node, other func(field policydecode.Node, patchType string)) []Source {
	list := n.List()
	if len(list) == 0 {
		n.Fail("has no mutations")
	}
	var out []Source
	for _, item := range list {
		f := item.Fields()
		x := Source{}
		own, wrong := "applyConfiguration", "jsonPatch"
		switch patchType := f.At("patchType").Text(); patchType {
		case "ApplyConfiguration":
		case "JSONPatch":
			own, wrong, x.JSONPatch = wrong, own, true
		default:
			f.At("patchType").Fail("must be ApplyConfiguration or JSONPatch, not %q", patchType)
			if other == nil {
				continue
			}
		}
		if other != nil && f.Has(wrong) {
			other(f.At(wrong), f.At("patchType").Text())
		}
		inner := f.At(own).Fields()
		x.Node = inner.At("expression")
		x.Text = x.Required()
		inner.Done()
		f.Elsewhere("below "+own, "expression")
		f.Done()
		out = append(out, x)
	}
	return out
}

// Builder compiles what a policy says. What is wrong goes to Failed.
type Builder struct {
	*Scope
	Failed  func(policydecode.Node, error)
	Rewrite func(expression string) string // of what is about the object; nil leaves it
	// ReplaceAtomic lets apply configurations replace atomic lists, maps and structs, as server-side apply
	// does. Else they fail with ErrAtomic, as on an API server: fields that such a value leaves out would be
	// lost.
	ReplaceAtomic bool
	built         []*Expression
}

// compileAll compiles sources; one without a string is reported already.
func (b *Builder) compileAll(all []Source, compile func(Source) (*Expression, error)) []*Expression {
	var out []*Expression
	for _, x := range all {
		if x.Text == "" {
			continue
		}
		compiled, err := compile(x)
		if err != nil {
			b.Failed(x.Node, err)
			continue
		}
		out = append(out, compiled)
	}
	b.built = append(b.built, out...)
	return out
}

func (b *Builder) rewritten(x Source) Source {
	if b.Rewrite != nil && !x.JSONPatch {
		x.Text = b.Rewrite(x.Text)
	}
	return x
}

// Variables compiles variables.
func (b *Builder) Variables(all []Source) { b.compileAll(all, b.variable) }

// Conditions compiles match conditions.
func (b *Builder) Conditions(all []Source) []*Expression {
	return b.compileAll(all, func(x Source) (*Expression, error) {
		x.condition = true
		return b.add(b.environment.plain, b.rewritten(x), cel.BoolType)
	})
}

// Mutations compiles mutations. JSON patches are not rewritten.
func (b *Builder) Mutations(all []Source) []*Expression {
	return b.compileAll(all,
		func(x Source) (*Expression, error) { return b.mutation(b.rewritten(x), b.ReplaceAtomic) })
}

// Values compiles expressions whose result must be of one of the types. They are not rewritten.
func (b *Builder) Values(all []Source, want ...*cel.Type) []*Expression {
	return b.compileAll(all,
		func(x Source) (*Expression, error) { return b.add(b.environment.plain, x, want...) })
}

// Lint warns of fields that no metadata has, of JSON pointers that cannot be meant, and of match conditions
// that are the same for every object. It notes conditions that are about what changes.
func (b *Builder) Lint() {
	for _, x := range b.built {
		for _, slip := range x.slips {
			x.Lint("%s", slip)
		}
		if x.changing != "" {
			x.Note("the policy acts on updates that change %s: what exists is evaluated unchanged, so nothing is shown", x.changing)
		}
	}
}

// Policy is what the policies of both languages have.
type Policy struct {
	Ref         engine.RuleRef
	Constraints *Constraints
	// FailuresIgnored is failurePolicy Ignore, and Reinvoked reinvocationPolicy IfNeeded.
	FailuresIgnored, Reinvoked bool

	Scope                 *Scope
	Conditions, Mutations []*Expression
	Traffic               Traffic
	Merges                bool // a mutation needs the schema of what it changes
	AsksUser              bool // an expression uses request user information
}

// Complete notes what the expressions of the policy, which are all compiled, ask for.
func (p *Policy) Complete() {
	p.Merges = slices.ContainsFunc(p.Mutations, func(x *Expression) bool { return !x.JSONPatch })
	p.Traffic, p.AsksUser = p.Scope.Traffic(), p.Scope.Uses("request.userInfo")
}

// Describe describes a policy that acts on admission.
func (p *Policy) Describe() engine.Description {
	d := engine.Description{
		Rule: p.Ref, Existing: engine.OnAdmission, Where: p.Constraints.Where(),
		Operations: p.Constraints.Operations(),
	}
	d.AsksOperation = p.Constraints.AsksOperation() ||
		slices.ContainsFunc([]string{"request.operation", "oldObject", "request.oldObject"}, p.Scope.Uses)
	for _, x := range p.Conditions {
		d.Where = append(d.Where, fmt.Sprintf("matchCondition %q", x.Name))
	}
	for _, x := range p.Mutations {
		d.Changes = append(d.Changes, x.paths...)
	}
	d.Changes = engine.Distinct(d.Changes)
	return d
}

// Request returns what expressions see as request, of the candidate that a target is. Who makes it is only
// looked up if a policy asks. As on a server, empty fields are left out.
func (k *Candidate) Request(
	ctx context.Context, t *engine.Target, w *engine.World, asksUser bool,
) map[string]any {
	gvk := t.Object.GroupVersionKind()
	kind := map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
	r := k.Resource
	resource := map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
	out := map[string]any{
		"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
		"operation": string(k.Operation), "dryRun": t.Request.DryRun, "userInfo": map[string]any{},
	}
	if asksUser {
		user, err := engine.RequestUser(ctx, t.Request, w)
		if out["userInfo"] = engine.UserInfoFields(&user); err != nil {
			out["userInfo"] = NewUnknownUser(err)
		}
	}
	for _, f := range [][2]string{{"name", k.Name}, {"namespace", k.Namespace}, {"subResource", k.Subresource}} {
		if f[1] != "" {
			out[f[0]] = f[1]
		}
	}
	return out
}

// Unsupported reports whether an expression fails because this run lacks something.
func Unsupported(err error) bool {
	var unsupported *UnsupportedError
	var noNamespace *engine.NamespaceError
	var unknownUser *engine.UnknownUserError
	return errors.As(err, &unsupported) || errors.As(err, &noNamespace) || errors.As(err, &unknownUser)
}

// SkippedError is why a policy that matched does not apply, in the words of its engine.
type SkippedError struct{ Reason string }

// Error is the reason.
func (e *SkippedError) Error() string { return e.Reason }

// Skipped reports whether the error is why a policy that matched does not apply.
func Skipped(err error) bool {
	var skipped *SkippedError
	var unmet *ConditionError
	var ignored *engine.IgnoredError
	return errors.As(err, &skipped) || errors.As(err, &unmet) || errors.As(err, &ignored)
}

// Ignored is the error of a failure that the failurePolicy ignores.
func Ignored(err error) error { return fmt.Errorf("%w (ignored, by the failurePolicy)", err) }

// OutcomeOf returns what comes of a policy that does not apply or fails: admission refuses the object, unless
// the failurePolicy ignores the failure. Where this run lacks something, or ends at a limit of its own,
// neither is known.
func OutcomeOf(err error, ignored bool) (engine.Outcome, error) {
	switch {
	case Skipped(err):
		return engine.Skipped, err
	case Unsupported(err):
		return engine.Unsupported, err
	case engine.OfThisProgram(err):
		return engine.Failed, err
	case ignored:
		return engine.Skipped, Ignored(err)
	}
	return engine.Denied, fmt.Errorf("%w, so that the object would be denied", err)
}

// SchemaOf returns that by which objects of a kind merge.
func SchemaOf(ctx context.Context, w *engine.World, kind schema.GroupVersionKind) (engine.Schema, error) {
	s, err := w.Schema(ctx, kind)
	if err != nil {
		return s, &UnsupportedError{Reason: "the schema of the object cannot be read: " + err.Error()}
	}
	return s, nil
}
