package evaluation

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// pass is one object on its way through programs and effects. Where one of these uses a Secret, it
// runs a second time, in a world that hides the values of all Secrets: what comes of that is made
// without them, and is what may be shown.
type pass struct {
	*Evaluation
	ctx context.Context // a pass does not outlive its call
	use *engine.SecretUse
	rec *recorder
	// target is the object as it is now, and hiding the same object as it may be shown.
	target, hiding engine.Target
	still          []place          // of what is hidden and was the same before
	hidesObject    bool             // fields of the object itself are hidden, which were removed or kept because of a Secret
	unselected     []*orderedEffect // the object had other labels
}

// evaluator is a program, or an effect: it returns the object after it.
type evaluator func(context.Context, engine.Target, *engine.World, engine.Sink) (*unstructured.Unstructured, error)

// begin returns a pass of an object that nothing has been done to.
func (e *Evaluation) begin(ctx context.Context, t engine.Target, reasons bool) *pass {
	return e.newPass(ctx, t, &recorder{reasons: reasons, room: e.steps.Load(), state: t.Object, before: t.Object, typ: func() diff.Type {
		return e.types.of(ctx, e.reader, t.Object.GroupVersionKind())
	}})
}

func (e *Evaluation) newPass(ctx context.Context, t engine.Target, rec *recorder) *pass {
	p := &pass{Evaluation: e, rec: rec, target: t, hiding: hidingTarget(t)}
	p.ctx, p.use = engine.WatchSecrets(ctx)
	return p
}

// state is an object as the rules of a run have made it, for the rules that it triggers.
type state struct {
	target, hiding engine.Target
	secret         bool             // a Secret was used to make it
	by             []engine.RuleRef // the rules that changed it
}

// state returns the object as it is now. One that admission would deny stays as it was.
func (p *pass) state() state {
	s := state{target: p.target, hiding: p.hiding, secret: p.involved()}
	if slices.ContainsFunc(p.rec.steps, func(s engine.Step) bool { return s.Outcome == engine.Denied }) {
		s.target = s.target.With(p.rec.before)
		s.hiding = s.hiding.With(engine.HideObject(p.rec.before))
		return s
	}
	for _, w := range p.rec.writes {
		if !slices.Contains(s.by, w.rule) {
			s.by = append(s.by, w.rule)
		}
	}
	if simulated := s.target.OldObject == p.rec.before; simulated && len(s.by) > 0 { // a run over the result would find no request that changes it
		s.target.OldObject, s.hiding.OldObject = s.target.Object, s.hiding.Object
	}
	return s
}

// hidingTarget returns a target without values of Secrets.
func hidingTarget(t engine.Target) engine.Target {
	t.Object, t.OldObject = engine.HideObject(t.Object), engine.HideObject(t.OldObject)
	return t
}

// involved reports whether a Secret, or what was made of one, is a part of what is evaluated.
func (p *pass) involved() bool {
	return p.use.Any() || p.hiding.Object != p.target.Object || p.hiding.OldObject != p.target.OldObject
}

// run runs an evaluator, whose panics are steps of the rule, on the object as it is now. Hiding is the same
// evaluator without values of Secrets; nil where there is none.
func (p *pass) run(rule engine.RuleRef, evaluate, hiding evaluator) error {
	if p.involved() {
		engine.NoteSecret(p.ctx) // what it asks for may depend on it
	}
	from := len(p.rec.steps)
	before, shown := p.target.Object, p.hiding.Object
	was := line().get(before.Object)
	after, err := guarded(rule, p.target, p.rec, func() (*unstructured.Unstructured, error) {
		return evaluate(p.ctx, p.target, p.world, p.rec)
	})
	if err != nil {
		return err
	}
	involved := p.involved() || hiding == nil
	p.target = p.target.With(after)
	switch {
	case !involved:
		p.hiding = p.hiding.With(after)
		p.copyInvocation()
		return nil
	case after == before && silent(p.rec.steps[from:]):
		p.copyInvocation()
		return nil
	}
	made, steps := shown, []engine.Step(nil)
	if hiding != nil {
		rec := &recorder{reasons: p.rec.reasons, state: shown, before: shown, typ: p.rec.typ}
		made, err = guarded(rule, p.hiding, rec, func() (*unstructured.Unstructured, error) {
			return hiding(p.ctx, p.hiding, p.hidingWorld, rec)
		})
		if err != nil {
			return err
		}
		steps = rec.steps
	}
	switch {
	case before == after && shown == made:
	default:
		hiding := recorded(was, after, made).Object
		p.hiding = p.hiding.With(p.reveal(states{before: before.Object, after: after.Object, shown: shown.Object, hiding: hiding}, newPathTree(onlyHiding(p.rec.steps[from:], steps))))
	}
	p.rec.show(from, steps)
	return nil
}

// line is the place where a target has the lines of the rules that changed it.
func line() place { return place{"metadata", "annotations", engine.AppliedPatches} }

// withLine returns an object with another text there.
func withLine(u *unstructured.Unstructured, text any) *unstructured.Unstructured {
	metadata, _ := u.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = diff.With(annotations, engine.AppliedPatches, text)
	return &unstructured.Unstructured{Object: diff.With(u.Object, "metadata", diff.With(metadata, "annotations", annotations))}
}

// recorded returns an object that was made in the world that hides. Where a rule changes nothing there but a value that is hidden, the
// target gets its line of AppliedPatches in the other world alone: the line is hidden, and not the name of the annotation.
func recorded(was any, after, made *unstructured.Unstructured) *unstructured.Unstructured {
	is, added := line().get(after.Object).(string)
	if !added || is == was || line().get(made.Object) != was {
		return made
	}
	return withLine(made, engine.HiddenValue)
}

// onlyHiding are the fields that were changed in the world that hides, by rules that change nothing in the other one: such
// a rule fails there on a value that is hidden here.
func onlyHiding(steps, hiding []engine.Step) (out []engine.FieldChange) {
	changed := map[engine.RuleRef]bool{}
	for _, s := range steps {
		changed[s.Rule] = changed[s.Rule] || s.Outcome == engine.Changed || s.Outcome == engine.Unchanged
	}
	for _, s := range hiding {
		if !changed[s.Rule] {
			out = append(out, s.Fields...)
		}
	}
	return out
}

// copyInvocation makes a second round start alike in both worlds.
func (p *pass) copyInvocation() {
	if p.target.Invocation != nil {
		*p.hiding.Invocation = *p.target.Invocation
	}
}

// silent reports whether no rule did anything, and no step has a text that came from the object.
func silent(steps []engine.Step) bool {
	return !slices.ContainsFunc(steps, func(s engine.Step) bool {
		return s.Outcome == engine.Unchanged || s.Err != nil || len(s.Warnings) > 0 || s.NotIdempotent != ""
	})
}

func (p *pass) reveal(s states, only *pathTree) *unstructured.Unstructured {
	r := revealer{still: p.still, only: only}
	out, _ := r.reveal(s)
	p.still, p.hidesObject = r.still, p.hidesObject || r.object
	object, _ := out.(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// show adds, to the steps from one on, how they may be shown: as the same rules did it in the world
// that hides.
func (r *recorder) show(from int, hiding []engine.Step) {
	r.shown = append(r.shown, r.steps[len(r.shown):from]...)
	of := map[engine.RuleRef][]engine.Step{}
	for _, h := range hiding {
		of[h.Rule] = append(of[h.Rule], h)
	}
	for _, s := range r.steps[from:] {
		made := engine.Step{}
		if left := of[s.Rule]; len(left) > 0 {
			made, of[s.Rule] = left[0], left[1:]
		}
		r.shown = append(r.shown, shownStep(s, made))
	}
}

// shownSteps are all steps as they may be shown; nil where that is as they are.
func (r *recorder) shownSteps() []engine.Step {
	if r.shown == nil {
		return nil
	}
	return append(r.shown, r.steps[len(r.shown):]...)
}

// shownStep returns a step with the texts that it also has where values of Secrets are hidden.
func shownStep(s, made engine.Step) engine.Step {
	alike := made.Outcome == s.Outcome || made.Outcome == engine.Changed && s.Outcome == engine.Unchanged
	switch {
	case s.Err == nil:
	case errors.Is(made.Err, engine.ErrHidden), alike && made.Err != nil && mayShow(s.Err.Error(), made.Err.Error()):
		s.Err = made.Err
	default:
		s.Err = engine.ErrHidden
	}
	warnings := slices.Clone(s.Warnings)
	for i, w := range warnings {
		warnings[i] = engine.Warning(engine.ErrHidden.Error())
		if alike && len(made.Warnings) == len(warnings) && mayShow(string(w), string(made.Warnings[i])) {
			warnings[i] = made.Warnings[i]
		}
	}
	s.Warnings = warnings
	s.Fields = alsoIn(made.Fields, s.Fields)
	switch {
	case s.NotIdempotent == "":
	case made.NotIdempotent != "" && mayShow(s.NotIdempotent, made.NotIdempotent):
		s.NotIdempotent = made.NotIdempotent
	default:
		s.NotIdempotent = engine.ErrHidden.Error()
	}
	return s
}

// alsoIn are the fields of a step, without the names of those that the same step does not change where values of Secrets are
// hidden: a Secret decides which they are.
func alsoIn(hiding, fields []engine.FieldChange) []engine.FieldChange {
	out, paths := slices.Clone(fields), newPathTree(hiding)
	for i, f := range fields {
		if !paths.alongside(f.Path) {
			out[i].Path = hiddenPath()
		}
	}
	return out
}

func hiddenPath() fieldpath.Path {
	return fieldpath.Path{fieldpath.FieldNameElement(engine.HiddenValue)}
}

// mayShow reports whether a text that was made without Secrets stands for another one.
func mayShow(text, made string) bool { return text == made || engine.IsHidden(made) }

// shown completes a Change with what may be shown of it, where that is not all.
func (p *pass) shown(c *engine.Change) {
	steps := p.rec.shownSteps()
	if steps == nil && p.hiding.Object == p.target.Object {
		return
	}
	out := *c
	if steps != nil {
		out.Steps = steps
	} else {
		out.Steps = slices.Clone(c.Steps)
	}
	before := p.shownBefore()
	was, is := viewOf(p.rec.before, before), viewOf(p.target.Object, p.hiding.Object)
	for i := range out.Steps {
		out.Steps[i].Fields = shownPaths(was, is, out.Steps[i].Fields)
	}
	c.Shown = &out
	if !c.Changed() {
		return
	}
	out.Before, out.After = before, p.hiding.Object
	if p.hidesObject {
		out.After = &unstructured.Unstructured{Object: identity(out.After.Object)}
	}
	hidden := ShowFields(c, &out)
	hidden = p.hideStill(&out) || hidden || engine.IsSecret(c.Before) // whose own values are hidden
	out.Target.Object = out.Before
	switch {
	case hidden:
	case steps == nil:
		c.Shown = nil
	default:
		out.Before, out.After, out.Target = c.Before, c.After, c.Target
	}
}

// hideStill hides what is hidden and was the same before, and reports whether there is anything.
func (p *pass) hideStill(c *engine.Change) (hidden bool) {
	before := diff.CopyOf(c.Before.Object)
	for _, at := range p.still {
		was, is := at.get(p.rec.before.Object), at.get(p.target.Object.Object)
		if text, ok := at.get(c.After.Object).(string); ok && engine.IsHidden(text) && was != nil && diff.Same(was, is) {
			before.Replace(at.path(), text)
			hidden = true
		}
	}
	if hidden {
		c.Before = copied(before)
	}
	return hidden
}

// copied is what became of an object.
func copied(c *diff.Copy) *unstructured.Unstructured {
	object, _ := c.Object().(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// shownImpacts are the impacts of a change as they may be shown. The text of one is withheld that is about a field with a
// hidden name, or that says of a hidden value what it is.
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
			shown, isHidden, there := shownIn(was, is, path)
			if !there && out[i].Code != engine.ImpactInvalid && path[len(path)-1].FieldName != nil {
				shown = hiddenPath() // a rule removes it again, or writes it the next time: a Secret may make its name
			}
			if field, isField := paths[path.String()]; isField {
				shown = field
			}
			out[i].Fields[j] = shown
			if !shown.Equals(path) || isHidden && out[i].Code == engine.ImpactInvalid {
				out[i].Text, out[i].Brief, out[i].Advice = engine.ErrHidden.Error(), "", ""
			}
		}
	}
	return out
}

// shownIn is how a path in one of the states of a change may be shown, whether the value there is hidden, and whether it is there. One in
// neither may be shown if all is there but its last name, where that is one of the schema: no Secret has made a field that it misses.
func shownIn(was, is *view, p fieldpath.Path) (shown fieldpath.Path, isHidden, there bool) {
	path, found, there := is.at(p)
	if !there {
		if before, value, was := was.at(p); was || len(path) < len(p) {
			path, found, there = before, value, was
		}
	}
	text, isText := found.(string)
	isHidden = isText && engine.IsHidden(text)
	if len(path) < len(p) {
		return hiddenPath(), true, there
	}
	return path, isHidden, there
}

// shownPaths are the paths of fields that a step changed, as they may be shown, in the object before the first rule and after
// the last one.
func shownPaths(was, is *view, fields []engine.FieldChange) []engine.FieldChange {
	var out []engine.FieldChange
	hidden := map[string]bool{} // by kind and path
	for _, f := range fields {
		path, _, there := is.at(f.Path)
		if !there {
			path, _, there = was.at(f.Path)
		}
		if !there {
			path = hiddenPath()
		}
		if len(path) < len(f.Path) || engine.IsHidden(path.String()) { // how it changes says what it is
			f.From, f.To = nil, nil
		}
		if len(path) < len(f.Path) {
			f.Kind = engine.Replaced
		}
		if text := path.String(); engine.IsHidden(text) || !path.Equals(f.Path) { // several may have become one
			if hidden[string(f.Kind)+text] {
				continue
			}
			hidden[string(f.Kind)+text] = true
		}
		f.Path = path
		out = append(out, f)
	}
	return out
}

// shownBefore is the object before the first rule, as it may be shown.
func (p *pass) shownBefore() *unstructured.Unstructured {
	before := engine.HideObject(p.rec.before)
	if p.hidesObject {
		before = &unstructured.Unstructured{Object: identity(before.Object)}
	}
	return before
}

// Hide completes a change that no program made with what may be shown of it: without what it has at some paths, and
// without the values of a Secret.
func Hide(c *engine.Change, paths []fieldpath.Path) {
	if !c.Changed() || len(paths) == 0 && !engine.IsSecret(c.Before) {
		return
	}
	out := *c
	hide := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		c := diff.CopyOf(engine.HideObject(u).Object)
		for _, p := range paths {
			c.Replace(p, engine.HiddenValue)
		}
		u = copied(c)
		if slices.ContainsFunc(paths, func(p fieldpath.Path) bool { return p[0].FieldName != nil && engine.IsHidden(*p[0].FieldName) }) {
			u = &unstructured.Unstructured{Object: identity(u.Object)}
		}
		return u
	}
	out.Before, out.After = hide(c.Before), hide(c.After)
	ShowFields(c, &out)
	out.Target.Object = out.Before
	out.Steps = slices.Clone(c.Steps)
	for i := range out.Steps {
		if len(out.Steps[i].Fields) > 0 {
			out.Steps[i].Fields = out.Fields
		}
	}
	c.Shown = &out
}

// identity is what every object has, without the names of its other fields.
func identity(object map[string]any) map[string]any {
	out := map[string]any{engine.HiddenValue: engine.HiddenValue}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if v, ok := object[name]; ok {
			out[name] = v
		}
	}
	return out
}

// hidesFields reports whether a field of the object itself has a hidden name.
func hidesFields(u *unstructured.Unstructured) bool {
	_, hides := u.Object[engine.HiddenValue]
	return hides
}

// ShowFields gives a change that may be shown, which has its own states, the fields of the change itself as they may be shown,
// and reports whether anything of them is hidden. The fields that were made of a Secret are marked.
func ShowFields(c, shown *engine.Change) (hidden bool) {
	if hidesFields(shown.Before) || hidesFields(shown.After) { // of a comparison, one alone may
		shown.Before, shown.After = &unstructured.Unstructured{Object: identity(shown.Before.Object)}, &unstructured.Unstructured{Object: identity(shown.After.Object)}
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
	before, after := diff.CopyOf(shown.Before.Object), diff.CopyOf(shown.After.Object)
	for i := range shown.Fields {
		hideBefore(before, after, &shown.Fields[i])
	}
	shown.Before, shown.After = copied(before), copied(after)
	return true
}

// hiddenWhole reports whether a field is found in something that is hidden as a whole, or is a field of the object itself whose
// name is hidden.
func hiddenWhole(f *engine.FieldChange, at fieldpath.Path, found any) bool {
	text, ok := found.(string)
	return ok && engine.IsHidden(text) && (len(at) < len(f.Path) || len(at) == 1 && !at.Equals(f.Path))
}

// shownField returns a field as it may be shown. The state before may be made of a Secret as well: it is that of the
// other side where two results are compared.
func shownField(before, after *view, f *engine.FieldChange) engine.FieldChange {
	out := *f
	path, to, _ := after.at(f.Path)
	was, from, _ := before.at(f.Path)
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

// hideBefore hides the value before of a field of which something is hidden: an earlier run may have made it of a Secret
// as well.
func hideBefore(before, after *diff.Copy, f *engine.FieldChange) {
	if !f.Withheld || f.Kind != engine.Replaced {
		return
	}
	from := engine.HiddenValue
	if f.To == from {
		to := from + " (after)"
		from += " (before)"
		f.To = to
		after.Replace(f.Path, to)
	}
	f.From = from
	before.Replace(f.Path, from)
}
