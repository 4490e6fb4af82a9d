package evaluation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// pass is one object on its way through programs and effects.
type pass struct {
	*Evaluation
	ctx        context.Context // a pass does not outlive its call
	world      *engine.World   // a view of the run's
	rec        *recorder
	target     engine.Target    // the object as it is now
	unselected []*orderedEffect // the object had other labels
}

// evaluator is a program, or an effect: it returns the object after it.
type evaluator func(
	context.Context, engine.Target, *engine.World, engine.Sink,
) (*unstructured.Unstructured, error)

// begin returns a pass of an object that nothing has been done to.
func (e *Evaluation) begin(ctx context.Context, t engine.Target, reasons bool) *pass {
	if t.Request.Open() {
		t = t.As(e.operation)
	}
	if t.Key.Of == (engine.Maker{}) { // else it is ignored with its maker
		t.Ignored = e.ignored(t.Object)
	}
	before := t.Object
	return &pass{Evaluation: e, ctx: ctx, world: e.world.Watched(), target: t, rec: &recorder{
		reasons: reasons, states: e.options.States, live: t.Written == nil,
		steps: make([]engine.Step, 0, min(len(e.own), 16)), state: before, before: before,
		typ: sync.OnceValue(func() diff.Type { return e.typeOf(ctx, before.GroupVersionKind()) }),
	}}
}

func (e *Evaluation) ignored(u *unstructured.Unstructured) engine.Ignored {
	by := engine.IgnoredBy(u)
	if by.Rules == "" && e.options.Ignore != nil {
		by = e.options.Ignore(u)
	}
	return by
}

// state is an object as changed by the rules of a run, for the rules that it triggers.
type state struct {
	target engine.Target
	by     []engine.RuleRef // the rules that changed it
}

// state returns the current object. An object that admission would deny stays as it was.
func (p *pass) state() state {
	s := state{target: p.target}
	if p.denied(0) {
		s.target = s.target.With(p.rec.before)
		return s
	}
	for _, w := range p.rec.writes() {
		if !slices.Contains(s.by, w.Rule) {
			s.by = append(s.by, w.Rule)
		}
	}
	// a run over the result would find no request that changes it
	if simulated := s.target.OldObject == p.rec.before; simulated && len(s.by) > 0 {
		s.target.OldObject = s.target.Object
	}
	return s
}

// run runs an evaluator on the current object. A panic is a step of the rule.
func (p *pass) run(rule engine.RuleRef, evaluate evaluator) error {
	world := p.world.Watched()
	if p.target.HoldsSecrets() {
		world.NoteSecret() // its questions may depend on it
	}
	from := len(p.rec.steps)
	after, err := guarded(rule, p.target, p.rec, func() (*unstructured.Unstructured, error) {
		return evaluate(p.ctx, p.target, world, p.rec)
	})
	if err != nil {
		return err
	}
	for i := range p.rec.steps[from:] {
		s := &p.rec.steps[from+i]
		s.Confidential = !s.Ignored() &&
			(s.Confidential || quotes(&p.target, s) || world.ReadSecret() && panicked(s.Err))
		p.target.Tainted = p.target.Tainted || s.Taints()
	}
	p.target = p.target.With(after)
	return nil
}

// quotes reports whether the error of a step may quote content of Secrets in the object.
func quotes(t *engine.Target, s *engine.Step) bool {
	return s.Err != nil && (t.Tainted || t.IsSecret() && s.Outcome.Incomplete())
}

func panicked(err error) bool {
	_, is := err.(*engine.PanicError) //nolint:errorlint // a wrapped one was a step already
	return is
}

// Conceal sets the Shown of a change where not everything may be shown: without the messages and values of
// confidential steps, and without the values of a Secret.
func Conceal(c *engine.Change) {
	var writes engine.Writes
	confidential := false
	for i := range c.Steps {
		s := &c.Steps[i]
		confidential = confidential || s.Confidential
		// unchanged content may come from an earlier run
		if !s.Confidential || s.Outcome != engine.Changed && s.Outcome != engine.Unchanged {
			continue
		}
		if writes = append(writes, s.Writes...); len(s.Writes) == 0 || !s.Writes.Cover(s.Fields) {
			writes = append(writes, engine.Write{Computed: true})
		}
	}
	if confidential || engine.IsSecret(c.Before) || engine.IsSecret(c.After) {
		show(c, confidential, func(u *unstructured.Unstructured) *unstructured.Unstructured {
			return withheld(u, writes)
		})
	}
}

// show sets the Shown of a change, given hide for its states. It stays nil if nothing is hidden and no step
// is confidential.
func show(c *engine.Change, confidential bool,
	hide func(*unstructured.Unstructured) *unstructured.Unstructured,
) {
	out := *c
	out.Before, out.After = hide(c.Before), hide(c.After)
	out.Target.Object = out.Before
	hidden := c.Changed() && ShowFields(c, &out)
	if !hidden && !confidential && out.Before == c.Before && out.After == c.After {
		return
	}
	out.Steps = nil
	for i := range c.Steps {
		s := shownStep(c.Steps[i], viewOf(c.Before, out.Before), viewOf(c.After, out.After))
		if s.Err != nil && s.Outcome != engine.NotMatched && !s.Ignored() &&
			(engine.IsSecret(c.Before) || engine.IsSecret(c.After)) {
			s.Err = hiddenErr(s.Err) // it may quote the Secret
		}
		out.Steps = append(out.Steps, s)
	}
	c.Shown = &out
}

// withheld returns an object without computed values, and without the values of a Secret. Where the existence
// of fields is computed, only its identity is left.
func withheld(u *unstructured.Unstructured, writes engine.Writes) *unstructured.Unstructured {
	u = engine.HideObject(u)
	if u == nil {
		return nil
	}
	object := any(u.Object)
	for _, w := range writes {
		if w.Computed {
			object = w.Hide(object)
		}
	}
	shown, _ := object.(map[string]any)
	if _, hidden := shown["metadata"].(string); shown == nil || hidden {
		return &unstructured.Unstructured{Object: identity(u.Object)}
	}
	if engine.Identical(shown, u.Object) {
		return u
	}
	return &unstructured.Unstructured{Object: shown}
}

// shownStep returns a step of a change between two states as it may be shown.
func shownStep(s engine.Step, was, is *view) engine.Step {
	s.Fields = shownPaths(was, is, s.Fields)
	if !s.Confidential {
		return s
	}
	if s.Err != nil {
		s.Err = hiddenErr(s.Err)
	}
	s.Warnings = slices.Clone(s.Warnings)
	for i := range s.Warnings {
		s.Warnings[i] = engine.Warning(engine.ErrHidden.Error())
	}
	if s.NotIdempotent != "" {
		s.NotIdempotent = engine.ErrHidden.Error()
	}
	return s
}

// hiddenErr hides an error, unless it says that the user may not ask for permissions.
func hiddenErr(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && apierrors.IsForbidden(err) {
		if of := status.Status().Details; of != nil && strings.HasSuffix(of.Kind, "subjectaccessreviews") {
			return &apierrors.StatusError{ErrStatus: status.Status()}
		}
	}
	return engine.ErrHidden
}

func hiddenPath() fieldpath.Path {
	return fieldpath.Path{fieldpath.FieldNameElement(engine.HiddenValue)}
}

// shownImpacts returns the impacts of a change as they may be shown. A message about a field with a hidden
// name, or about a hidden value, is withheld.
func shownImpacts(c *engine.Change) []engine.Impact {
	paths := make(map[string]fieldpath.Path, len(c.Fields))
	for i, f := range c.Fields {
		paths[f.Path.String()] = c.Shown.Fields[i].Path
	}
	was, is := viewOf(c.Before, c.Shown.Before), viewOf(c.After, c.Shown.After)
	out := slices.Clone(c.Impacts)
	for i := range out {
		out[i].Fields = slices.Clone(out[i].Fields)
		for j, path := range out[i].Fields {
			shown, found, there := is.shownAt(path)
			if !there {
				if before, value, had := was.shownAt(path); had || len(shown) < len(path) {
					shown, found, there = before, value, had
				}
			}
			// A path in neither state may be shown if only its last name is missing, and is from the schema; else a
			// rule removes it again, or writes it the next time: a Secret may make its name.
			isPart, isInvalid := len(shown) < len(path), out[i].Code == engine.ImpactInvalid
			if isPart || !there && !isInvalid && path[len(path)-1].FieldName != nil {
				shown = hiddenPath()
			}
			if field, isField := paths[path.String()]; isField {
				shown = field
			}
			out[i].Fields[j] = shown
			text, _ := found.(string)
			if !shown.Equals(path) || isInvalid && (isPart || engine.IsHidden(text)) {
				out[i].Text, out[i].Brief, out[i].Advice = engine.ErrHidden.Error(), "", ""
			}
		}
	}
	return out
}

// shownPaths returns the paths that a step changed as they may be shown, in the object before the first rule
// and after the last one.
func shownPaths(was, is *view, fields []engine.FieldChange) []engine.FieldChange {
	var out []engine.FieldChange
	hidden := map[string]bool{} // by kind and path
	for _, f := range fields {
		path, _, there := is.shownAt(f.Path)
		if !there {
			path, _, there = was.shownAt(f.Path)
		}
		if !there {
			path = hiddenPath()
		}
		if text := path.String(); engine.IsHidden(text) || !path.Equals(f.Path) {
			f.From, f.To = nil, nil // the kind of change says enough
			if len(path) < len(f.Path) {
				f.Kind = engine.Replaced
			}
			if hidden[string(f.Kind)+text] { // several have become one
				continue
			}
			hidden[string(f.Kind)+text] = true
		}
		f.Path = path
		out = append(out, f)
	}
	return out
}

// Hide sets the Shown of a change that no program made: without the values at some paths, and without the
// values of a Secret.
func Hide(c *engine.Change, paths []fieldpath.Path) {
	if !c.Changed() || len(paths) == 0 && !engine.IsSecret(c.Before) {
		return
	}
	show(c, true, func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u = engine.HideObject(u)
		now := any(u.Object)
		for _, p := range paths {
			if p[0].FieldName != nil && engine.IsHidden(*p[0].FieldName) {
				return &unstructured.Unstructured{Object: identity(u.Object)}
			}
			now = diff.Replaced(u.Object, now, p, engine.HiddenValue)
		}
		return objectOf(now)
	})
	for i := range c.Shown.Steps {
		s := &c.Shown.Steps[i]
		if s.Err = c.Steps[i].Err; len(s.Fields) > 0 { // which quotes no values
			s.Fields = c.Shown.Fields
		}
	}
}

func objectOf(v any) *unstructured.Unstructured {
	object, _ := v.(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// identity returns the fields that name an object.
func identity(object map[string]any) map[string]any {
	out := map[string]any{
		engine.HiddenValue: engine.HiddenValue, "apiVersion": object["apiVersion"], "kind": object["kind"],
	}
	metadata, _ := object["metadata"].(map[string]any)
	names := map[string]any{engine.HiddenValue: engine.HiddenValue}
	for _, name := range []string{"name", "namespace", "uid"} {
		if v, ok := metadata[name]; ok {
			names[name] = v
		}
	}
	out["metadata"] = names
	return out
}

// hidesFields reports whether a field of the object itself has a hidden name.
func hidesFields(u *unstructured.Unstructured) bool {
	_, hides := u.Object[engine.HiddenValue]
	return hides
}

// ShowFields gives a change that may be shown, which has its own states, the fields of the change itself as
// they may be shown, and reports whether any part of them is hidden. It marks fields made from a Secret.
func ShowFields(c, shown *engine.Change) (hidden bool) {
	if hidesFields(shown.Before) || hidesFields(shown.After) { // in a comparison, only one may
		shown.Before, shown.After = &unstructured.Unstructured{Object: identity(shown.Before.Object)},
			&unstructured.Unstructured{Object: identity(shown.After.Object)}
	}
	shown.Fields = make([]engine.FieldChange, len(c.Fields))
	was, is := viewOf(c.Before, shown.Before), viewOf(c.After, shown.After)
	for i := range c.Fields {
		shown.Fields[i] = shownField(was, is, &c.Fields[i])
		hidden = hidden || shown.Fields[i].Withheld
	}
	if !hidden {
		return false
	}
	before, after := any(shown.Before.Object), any(shown.After.Object)
	for i := range shown.Fields {
		f := &shown.Fields[i]
		if !f.Withheld || f.Kind != engine.Replaced {
			continue
		}
		// An earlier run may have made the value before of a Secret as well.
		from := engine.HiddenValue
		if f.To == from {
			f.To, from = engine.HiddenValue+" (after)", engine.HiddenValue+" (before)"
			after = diff.Replaced(shown.After.Object, after, f.Path, engine.HiddenValue+" (after)")
		}
		f.From = from
		before = diff.Replaced(shown.Before.Object, before, f.Path, from)
	}
	shown.Before, shown.After = objectOf(before), objectOf(after)
	return true
}

// hiddenWhole reports whether a field is in a value that is hidden as a whole, or has a hidden name.
func hiddenWhole(f *engine.FieldChange, at fieldpath.Path, found any) bool {
	text, ok := found.(string)
	return ok && engine.IsHidden(text) && !at.Equals(f.Path)
}

// shownField returns a field as it may be shown. The state before may contain a Secret as well: in a
// comparison of two results it is the other result.
func shownField(before, after *view, f *engine.FieldChange) engine.FieldChange {
	out := *f
	path, to, _ := after.shownAt(f.Path)
	was, from, _ := before.shownAt(f.Path)
	switch isBefore, isAfter := hiddenWhole(f, was, from), hiddenWhole(f, path, to); {
	case isBefore || isAfter:
		if out.Path = path; !isAfter || isBefore && len(was) < len(path) {
			out.Path = was
		}
		out.Kind = engine.Replaced
		var had, has bool
		if out.From, had = diff.Lookup(before.shown, out.Path); !had {
			out.Kind = engine.Added
		}
		if out.To, has = diff.Lookup(after.shown, out.Path); !has {
			out.Kind = engine.Removed
		}
	case f.Kind == engine.Removed:
		out.Path, out.From = was, from
	case f.Kind == engine.Moved:
		out.Path = path
	case f.Kind == engine.Replaced && path.Equals(f.Path) && !was.Equals(f.Path):
		out.Path, out.From, out.To = was, from, engine.HiddenValue
	case f.Kind == engine.Replaced:
		out.Path, out.From, out.To = path, from, to
	default:
		out.Path, out.To = path, to
	}
	if !out.Path.Equals(f.Path) {
		f.SecretFrom = 1
		for f.SecretFrom <= len(out.Path) && out.Path[:f.SecretFrom].Equals(f.Path[:f.SecretFrom]) {
			f.SecretFrom++
		}
	}
	if f.SecretFrom > 0 || !diff.Same(out.From, f.From) || !diff.Same(out.To, f.To) {
		f.Secret, out.Withheld = true, true
	}
	return out
}

// view is an object, and its shown form; both are empty where there is none.
type view struct {
	real, shown any
}

func viewOf(real, shown *unstructured.Unstructured) *view {
	if real == nil {
		return &view{}
	}
	return &view{real: real.Object, shown: shown.Object}
}

// shownAt finds the shown value at a path of the object, and the shown part of the path: it ends at the first
// hidden name.
func (v *view) shownAt(p fieldpath.Path) (path fieldpath.Path, found any, there bool) {
	real, shown := v.real, v.shown
	for _, e := range p {
		if text, ok := shown.(string); ok && engine.IsHidden(text) { // as a whole
			return path, shown, true
		}
		below, is := diff.Lookup(real, fieldpath.Path{e})
		var seen any
		if e.FieldName != nil {
			fields, _ := shown.(map[string]any)
			visible := false
			if seen, visible = fields[*e.FieldName]; is && !visible {
				e, seen = fieldpath.FieldNameElement(engine.HiddenValue), engine.HiddenValue
			}
		} else {
			list, _ := real.([]any)
			items, _ := shown.([]any)
			if is = is && diff.Index(list, e) < len(items); is {
				seen = items[diff.Index(list, e)]
			}
			e = hiddenElement(e, seen)
		}
		path = append(path, e)
		if !is {
			return path, seen, false
		}
		real, shown = below, seen
	}
	return path, shown, true
}

// hiddenElement names an item of a list by its shown part.
func hiddenElement(e fieldpath.PathElement, item any) fieldpath.PathElement {
	switch {
	case e.Key != nil:
		fields, _ := item.(map[string]any)
		key := make(value.FieldList, len(*e.Key))
		for i, f := range *e.Key {
			key[i] = f
			if !diff.Same(fields[f.Name], f.Value.Unstructured()) {
				key[i].Value = value.NewValueInterface(engine.HiddenValue)
			}
		}
		return fieldpath.PathElement{Key: &key}
	case e.Value != nil && !diff.Same(item, (*e.Value).Unstructured()):
		return fieldpath.ValueElement(value.NewValueInterface(engine.HiddenValue))
	}
	return e
}
