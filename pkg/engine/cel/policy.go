package cel

import (
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Named is an expression of a policy with a name: a variable, a match condition, an annotation.
type Named struct {
	policydecode.Node // of the expression
	Name, Text        string
}

// DecodeNamed reads a list of names and expressions; that an expression is there is left to who compiles it. Twice reports
// the second one of a name.
func DecodeNamed(n policydecode.Node, twice func(name policydecode.Node, x Named)) []Named {
	var out []Named
	known := map[string]bool{}
	for _, item := range n.List() {
		f := item.Fields()
		x := Named{Node: f.At("expression"), Name: f.At("name").Required()}
		x.Text, _ = x.Value.(string)
		f.Done()
		if x.Name != "" && known[x.Name] && twice != nil {
			twice(f.At("name"), x)
		}
		known[x.Name] = true
		out = append(out, x)
	}
	return out
}

// Patch is a mutation as a policy has it.
type Patch struct {
	policydecode.Node // of the expression
	Text              string
	JSONPatch         bool // else it is an apply configuration
}

// DecodePatches reads a list of mutations. Other, if it is set, reports the field of the other type of patch.
func DecodePatches(n policydecode.Node, other func(field policydecode.Node, patchType string)) []Patch {
	list := n.List()
	if len(list) == 0 {
		n.Fail("has no mutations")
	}
	var out []Patch
	for _, item := range list {
		f := item.Fields()
		p := Patch{}
		own, wrong := "applyConfiguration", "jsonPatch"
		switch patchType := f.At("patchType").Text(); patchType {
		case "ApplyConfiguration":
		case "JSONPatch":
			own, wrong, p.JSONPatch = wrong, own, true
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
		p.Node = inner.At("expression")
		p.Text = p.Required()
		inner.Done()
		f.Elsewhere("below "+own, "expression")
		f.Done()
		out = append(out, p)
	}
	return out
}

// Builder compiles what a policy says. What is wrong goes to Failed.
type Builder struct {
	*Scope
	Failed  func(policydecode.Node, error)
	Rewrite func(expression string) string // of what is about the object; nil leaves it
	Atomics Atomics
	lints   []func()
}

// Condition is a compiled match condition.
type Condition struct {
	Field, Name string
	*Expression
}

// Change is a compiled mutation of a policy.
type Change struct {
	Field     string
	JSONPatch bool
	*Mutation
}

// Lint warns of what was compiled.
func (b *Builder) Lint() {
	for _, lint := range b.lints {
		lint()
	}
}

func (b *Builder) rewritten(text string) string {
	if b.Rewrite == nil {
		return text
	}
	return b.Rewrite(text)
}

// Variables compiles variables.
func (b *Builder) Variables(all []Named) {
	for _, x := range all {
		if x.Required() == "" {
			continue
		}
		if err := b.Variable(x.Name, x.Text); err != nil {
			b.Failed(x.Node, err)
			continue
		}
		compiled := b.variables[len(b.variables)-1].expression
		b.lints = append(b.lints, func() { compiled.Lint(x.Node) })
	}
}

// Conditions compiles match conditions.
func (b *Builder) Conditions(all []Named) []Condition {
	var out []Condition
	for _, x := range all {
		if x.Required() == "" {
			continue
		}
		compiled, err := b.Condition(b.rewritten(x.Text))
		if err != nil {
			b.Failed(x.Node, err)
			continue
		}
		out = append(out, Condition{x.Path, x.Name, compiled})
		b.lints = append(b.lints, func() { compiled.LintCondition(x.Node) })
	}
	return out
}

// Changes compiles mutations. JSON patches are not rewritten.
func (b *Builder) Changes(all []Patch) []Change {
	var out []Change
	for _, x := range all {
		if x.Text == "" {
			continue // it is reported already
		}
		var compiled *Mutation
		var err error
		if x.JSONPatch {
			compiled, err = b.JSONPatch(x.Text)
		} else {
			compiled, err = b.ApplyConfiguration(b.rewritten(x.Text), b.Atomics)
		}
		if err != nil {
			b.Failed(x.Node, err)
			continue
		}
		out = append(out, Change{x.Path, x.JSONPatch, compiled})
		b.lints = append(b.lints, func() { compiled.Lint(x.Node) })
	}
	return out
}

// PathsOf returns the fields that mutations name, each once.
func PathsOf(all []Change) []string {
	var out []string
	for _, c := range all {
		out = append(out, c.Paths()...)
	}
	return engine.Distinct(out)
}

// Request is the admission request that a run simulates.
type Request struct {
	Kind                         schema.GroupVersionKind
	Resource                     schema.GroupVersionResource
	Subresource, Namespace, Name string
	Operation                    engine.Operation
	DryRun                       bool
	User                         authenticationv1.UserInfo
	Nobody                       error // why the user is not known; nil where it is
}

// Fields returns what expressions see as request. As on a server, empty fields are left out.
func (r *Request) Fields() map[string]any {
	kind := map[string]any{"group": r.Kind.Group, "version": r.Kind.Version, "kind": r.Kind.Kind}
	resource := map[string]any{"group": r.Resource.Group, "version": r.Resource.Version, "resource": r.Resource.Resource}
	out := map[string]any{
		"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
		"operation": string(r.Operation), "userInfo": engine.UserInfoFields(&r.User), "dryRun": r.DryRun,
	}
	if r.Nobody != nil {
		out["userInfo"] = UnknownUser{}
	}
	for name, text := range map[string]string{"name": r.Name, "namespace": r.Namespace, "subResource": r.Subresource} {
		if text != "" {
			out[name] = text
		}
	}
	return out
}

// requested is the resource that authorizer.requestResource asks about.
type requested struct{ *Request }

var _ library.Resource = requested{}

// GetName returns the name of the object.
func (r requested) GetName() string { return r.Name }

// GetNamespace returns the namespace of the object.
func (r requested) GetNamespace() string { return r.Namespace }

// GetResource returns the requested resource.
func (r requested) GetResource() schema.GroupVersionResource { return r.Resource }

// GetSubresource returns its subresource.
func (r requested) GetSubresource() string { return r.Subresource }

// Unsupported reports whether an expression fails because this run lacks something.
func Unsupported(err error) bool {
	var unsupported *UnsupportedError
	var noNamespace *engine.NamespaceError
	return errors.As(err, &unsupported) || errors.As(err, &noNamespace)
}

// Ignored is the error of a failure that the failurePolicy ignores.
func Ignored(err error) error { return fmt.Errorf("%w (ignored, by the failurePolicy)", err) }

// OutcomeOf returns what comes of a policy that fails: admission refuses the object, unless the failurePolicy ignores
// the failure. Where this run lacks something, or ends at a limit of its own, neither is known.
func OutcomeOf(err error, ignored bool) (engine.Outcome, error) {
	switch {
	case Unsupported(err):
		return engine.Unsupported, err
	case engine.OfThisProgram(err):
		return engine.Failed, err
	case ignored:
		return engine.Skipped, Ignored(err)
	}
	return engine.Denied, fmt.Errorf("%w, so that the object would be denied", err)
}
