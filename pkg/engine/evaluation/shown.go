package evaluation

import (
	"context"
	"errors"
	"maps"
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
	together       bool             // effects change the target in place, so that the states between them are gone
}

// evaluator is a program, or an effect: it returns the object after it.
type evaluator func(context.Context, engine.Target, *engine.World, engine.Sink) (*unstructured.Unstructured, error)

// begin returns a pass of an object that nothing has been done to.
func (e *Evaluation) begin(ctx context.Context, t engine.Target, reasons bool) *pass {
	steps := make([]engine.Step, 0, e.steps.Load())
	return e.newPass(ctx, t, &recorder{reasons: reasons, steps: steps, state: t.Object, before: t.Object, typ: func() diff.Type {
		return e.types.of(ctx, e.reader, t.Object.GroupVersionKind())
	}})
}

func (e *Evaluation) newPass(ctx context.Context, t engine.Target, rec *recorder) *pass {
	p := &pass{Evaluation: e, rec: rec, target: t, hiding: hidingTarget(t)}
	p.ctx, p.use = engine.WatchSecrets(engine.ForObject(ctx))
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
	after, err := guarded(rule, p.target, p.rec, func() (*unstructured.Unstructured, error) {
		return evaluate(p.ctx, p.target, p.world, p.rec)
	})
	if err != nil {
		return err
	}
	involved := p.involved() || hiding == nil
	p.target = p.target.With(after)
	switch {
	case involved && p.together && (hiding == nil || p.hiding.Draft == nil):
		return errAlone
	case !involved:
		p.hiding = p.hiding.With(after)
		p.copyInvocation()
		return nil
	case after == before && silent(p.rec.steps[from:]):
		p.copyInvocation()
		return nil
	}
	made, steps, was := shown, []engine.Step(nil), line().get(shown.Object)
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
	only := onlyHiding(p.rec.steps[from:], steps)
	switch {
	case before == after && shown == made:
	case p.together && shown != made && p.alike(p.rec.steps[from:], steps, before == after, after, made):
		if before == after && line().get(made.Object) != was {
			made = withLine(p.hiding.Draft, made, was)
		}
		p.hiding = p.hiding.With(made)
	case p.together:
		return errAlone
	default:
		p.hiding = p.hiding.With(p.reveal(states{before: before.Object, after: after.Object, shown: shown.Object, hiding: recorded(before, after, made).Object}, only))
	}
	p.rec.show(from, steps)
	return nil
}

// alike reports whether an effect has changed the same fields in both worlds, and to the same but for what is hidden: what is
// made in the world that hides is then what may be shown. One that changes nothing in the other world may still have replaced what has
// become the same there, and its line of AppliedPatches, which is taken back.
func (p *pass) alike(steps, hiding []engine.Step, nothing bool, after, made *unstructured.Unstructured) bool {
	return slices.EqualFunc(steps, hiding, func(s, h engine.Step) bool {
		same := nothing || s.Outcome == h.Outcome && slices.EqualFunc(s.Fields, h.Fields, func(f, g engine.FieldChange) bool {
			return f.Kind == g.Kind && f.Path.Equals(g.Path)
		})
		return s.Rule == h.Rule && same && !slices.ContainsFunc(h.Fields, func(f engine.FieldChange) bool {
			is, there := diff.Lookup(after.Object, f.Path)
			seen, visible := diff.Lookup(made.Object, f.Path)
			if nothing && (f.Kind != engine.Replaced || !there) {
				return true
			}
			return (there != visible || !p.hides(is, seen)) && !(nothing && f.Path.Equals(fieldpath.MakePathOrDie(line()...)))
		})
	})
}

// hides reports whether a value is another one of which texts are hidden.
func (p *pass) hides(is, seen any) bool {
	switch seen := seen.(type) {
	case string:
		if engine.IsHidden(seen) {
			r := revealer{learn: p.world.Learn}
			r.hidden(states{after: is}, seen)
			return true
		}
	case map[string]any:
		fields, isMap := is.(map[string]any)
		return isMap && maps.EqualFunc(fields, seen, p.hides)
	case []any:
		items, isList := is.([]any)
		return isList && slices.EqualFunc(items, seen, p.hides)
	}
	return is == seen
}

// line is the place where a target has the lines of the rules that changed it.
func line() place { return place{"metadata", "annotations", engine.AppliedPatches} }

// withLine returns an object with another text there.
func withLine(d *engine.Draft, u *unstructured.Unstructured, text any) *unstructured.Unstructured {
	metadata, _ := u.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	out := d.Set(u.Object, "metadata", d.Set(metadata, "annotations", d.Set(annotations, engine.AppliedPatches, text)))
	d.Commit()
	return &unstructured.Unstructured{Object: out}
}

// recorded returns an object that was made in the world that hides. Where a rule changes nothing there but a value that is hidden, the
// target gets its line of AppliedPatches in the other world alone: the line is hidden, and not the name of the annotation.
func recorded(before, after, made *unstructured.Unstructured) *unstructured.Unstructured {
	is, added := line().get(after.Object).(string)
	if was := line().get(before.Object); !added || is == was || line().get(made.Object) != was {
		return made
	}
	return withLine(nil, made, engine.HiddenValue)
}

// onlyHiding are the fields that were changed in the world that hides, by rules that change nothing in the other one: such
// a rule fails there on a value that is hidden here.
func onlyHiding(steps, hiding []engine.Step) []fieldpath.Path {
	changed := map[engine.RuleRef]bool{}
	for _, s := range steps {
		changed[s.Rule] = changed[s.Rule] || s.Outcome == engine.Changed || s.Outcome == engine.Unchanged
	}
	var out []fieldpath.Path
	for _, s := range hiding {
		if changed[s.Rule] {
			continue
		}
		for _, f := range s.Fields {
			out = append(out, f.Path)
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

func (p *pass) reveal(s states, only []fieldpath.Path) *unstructured.Unstructured {
	r := revealer{learn: p.world.Learn, still: p.still, only: only}
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
	out := slices.Clone(fields)
	for i, f := range fields {
		if !slices.ContainsFunc(hiding, func(h engine.FieldChange) bool { return alongside(h.Path, f.Path) }) {
			out[i].Path = hiddenPath()
		}
	}
	return out
}

// alongside reports whether a path may be, or lead to, or be a part of, another one; what is hidden of it may be anything.
func alongside(hiding, p fieldpath.Path) bool {
	for i := range min(len(hiding), len(p)) {
		if !hiding[i].Equals(p[i]) && !engine.IsHidden(hiding[i].String()) {
			return false
		}
	}
	return true
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
	for i := range out.Steps {
		out.Steps[i].Fields = p.shownPaths(before, out.Steps[i].Fields)
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
	hidden = p.hideStill(&out) || hidden
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
	for _, at := range p.still {
		was, is := at.get(p.rec.before.Object), at.get(p.target.Object.Object)
		if text, ok := at.get(c.After.Object).(string); ok && engine.IsHidden(text) && was != nil && diff.Same(was, is) {
			before, _ := at.put(c.Before.Object, text).(map[string]any)
			c.Before, hidden = &unstructured.Unstructured{Object: before}, true
		}
	}
	return hidden
}

// shownImpacts are the impacts of a change as they may be shown. The text of one is withheld that is about a field with a
// hidden name, or that says of a hidden value what it is.
func shownImpacts(c *engine.Change) []engine.Impact {
	paths := make(map[string]fieldpath.Path, len(c.Fields))
	for i, f := range c.Fields {
		paths[f.Path.String()] = c.Shown.Fields[i].Path
	}
	out := slices.Clone(c.Impacts)
	for i := range out {
		out[i].Fields = slices.Clone(out[i].Fields)
		for j, path := range out[i].Fields {
			shown, isHidden := shownIn(c, path)
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

// shownIn is how a path in one of the states of a change may be shown, and whether the value there is hidden. One in
// neither may be shown if all is there but its last name: no Secret has made a field that is missing.
func shownIn(c *engine.Change, p fieldpath.Path) (shown fieldpath.Path, isHidden bool) {
	path, found, there := shownAt(p, c.After.Object, c.Shown.After.Object)
	if !there && len(path) < len(p) {
		path, found, _ = shownAt(p, c.Before.Object, c.Shown.Before.Object)
	}
	text, isText := found.(string)
	isHidden = isText && engine.IsHidden(text)
	if len(path) < len(p) {
		return hiddenPath(), true
	}
	return path, isHidden
}

// shownPaths are the paths of fields that a step changed, as they may be shown. Before is the object before the first
// rule, as it may be shown.
func (p *pass) shownPaths(before *unstructured.Unstructured, fields []engine.FieldChange) []engine.FieldChange {
	var out []engine.FieldChange
	for _, f := range fields {
		path, _, there := shownAt(f.Path, p.target.Object.Object, p.hiding.Object.Object)
		if !there {
			path, _, there = shownAt(f.Path, p.rec.before.Object, before.Object)
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
		f.Path = path
		if !slices.ContainsFunc(out, func(other engine.FieldChange) bool { return other.Kind == f.Kind && other.Path.Equals(path) }) {
			out = append(out, f)
		}
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
		u = engine.HideObject(u)
		for _, p := range paths {
			u = replaced(u, p, engine.HiddenValue)
		}
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
	for i := range c.Fields {
		shown.Fields[i] = shownField(c, shown, &c.Fields[i])
		hidden = hidden || shown.Fields[i].Withheld
	}
	for i := range shown.Fields {
		hideBefore(shown, &shown.Fields[i])
	}
	return hidden
}

// hiddenWhole reports whether a field is found in something that is hidden as a whole, or is a field of the object itself whose
// name is hidden.
func hiddenWhole(f *engine.FieldChange, at fieldpath.Path, found any) bool {
	text, ok := found.(string)
	return ok && engine.IsHidden(text) && (len(at) < len(f.Path) || len(at) == 1 && !at.Equals(f.Path))
}

// shownField returns a field as it may be shown. The state before may be made of a Secret as well: it is that of the
// other side where two results are compared.
func shownField(real, c *engine.Change, f *engine.FieldChange) engine.FieldChange {
	out := *f
	path, to, _ := shownAt(f.Path, real.After.Object, c.After.Object)
	was, from, _ := shownAt(f.Path, real.Before.Object, c.Before.Object)
	switch isBefore, isAfter := hiddenWhole(f, was, from), hiddenWhole(f, path, to); {
	case isBefore || isAfter:
		if out.Path = path; !isAfter || isBefore && len(was) < len(path) {
			out.Path = was
		}
		out.Kind = engine.Replaced
		var had, has bool
		if out.From, had = diff.Lookup(c.Before.Object, out.Path); !had {
			out.Kind = engine.Added
		}
		if out.To, has = diff.Lookup(c.After.Object, out.Path); !has {
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
func hideBefore(c *engine.Change, f *engine.FieldChange) {
	if !f.Withheld || f.Kind != engine.Replaced {
		return
	}
	f.From = engine.HiddenValue
	if f.To == f.From {
		f.From, f.To = engine.HiddenValue+" (before)", engine.HiddenValue+" (after)"
		c.After = replaced(c.After, f.Path, f.To)
	}
	c.Before = replaced(c.Before, f.Path, f.From)
}

// replaced returns an object with another value at a path.
func replaced(u *unstructured.Unstructured, p fieldpath.Path, v any) *unstructured.Unstructured {
	out, _ := diff.With(u.Object, p, v).(map[string]any)
	return &unstructured.Unstructured{Object: out}
}
