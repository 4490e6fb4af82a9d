package fix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// rounds is the maximum number of evaluations until nothing changes: one for an update, one for the
// differences of a creation, and one for each rule that depends on a later one.
const rounds = 5

// options are the parts of a run.
type options struct {
	*Flags
	Out, ErrOut io.Writer // ErrOut masks and escapes
	first       io.Writer // for the notices of the first evaluation
	open        func(errOut io.Writer) (*factory.Factory, error)
	roots       []string
	since       map[string]bool // places of the files that may change; nil for all

	overlay *overlay             // nil for files
	files   map[string]*manifest // by their paths
	failed  bool                 // some objects could not be evaluated or edited
	told    map[string]bool
}

// round is one evaluation of the files.
type round struct {
	run     *evaluate.Run
	summary evaluation.Summary
	changes map[string][]*engine.Change // by the paths of their files
}

// run makes the changes, and returns the exit code.
func (o *options) run(ctx context.Context) (int, error) {
	o.told = map[string]bool{}
	errOut := o.first
	var summary evaluation.Summary
	for n := 1; ; n++ {
		r, err := o.evaluate(ctx, errOut)
		switch {
		case err != nil && process.Interrupted(err):
			return process.ExitInterrupted, process.InterruptedAfter(r.summary.Objects)
		case err != nil:
			return process.ExitNothing, withTemplates(err)
		case n == 1 && r.run.Broken() > 0 && o.Write:
			return process.ExitIncomplete, errors.New("nothing was written: " + r.run.BrokenText())
		}
		if n == 1 {
			summary = r.summary
		}
		o.failed = o.failed || r.run.Incomplete(r.summary)
		made := false
		if v := o.overlay; v != nil {
			made = v.change(ctx, r.changes[v.directory], o.AllowSecrets, n == rounds)
			r.changes = nil
		}
		for _, path := range slices.Sorted(maps.Keys(r.changes)) {
			if f := o.file(ctx, path); n < rounds {
				made = f.change(ctx, r.changes[path]) || made
			} else {
				f.unsettled(ctx, r.changes[path])
			}
		}
		if !made {
			return o.finish(ctx, summary)
		}
		errOut = io.Discard // the notices are the same
	}
}

// evaluate evaluates the policies on the new content of the files.
func (o *options) evaluate(ctx context.Context, errOut io.Writer) (*round, error) {
	r := &round{changes: map[string][]*engine.Change{}}
	w, err := o.open(errOut)
	if err != nil {
		return r, err
	}
	texts := map[string][]byte{}
	for path, f := range o.files {
		texts[path] = f.text
	}
	if o.overlay != nil {
		texts[file.Place(o.overlay.path)] = o.overlay.text
	}
	w.ReadInstead(texts)
	w.Twice = func(earlier, later string) {
		one, at := cutLine(earlier)
		other, where := cutLine(later)
		// the same file, perhaps by a link
		if place := file.Place(one); o.since != nil && !o.since[place] ||
			place == file.Place(other) && at == where {
			return
		}
		o.failed = true
		o.once("%s: it is left as it is, because the same object is at %s: fix one directory after the other", earlier, later)
	}
	request, err := o.Objects.Request()
	if err != nil {
		return r, err
	}
	of, err := w.Evaluation(ctx, nil, request)
	if err != nil {
		return r, err
	}
	if r.run, err = of.Compile(); err != nil {
		return r, err
	}
	r.summary, err = r.run.Each(ctx, func(c *engine.Change) error {
		o.tell(c)
		switch {
		case c.Changed():
		case c.Created.Changed() && !c.Created.Denied():
			c = c.Created
		default:
			return nil
		}
		path, _ := cutLine(c.Target.Origin)
		if c.Before == nil || c.Denied() || c.Incomplete() || o.since != nil && !o.since[file.Place(path)] {
			return nil
		}
		r.changes[path] = append(r.changes[path], c)
		return nil
	})
	return r, err
}

// tell reports, once, rules that could not be evaluated on an object.
func (o *options) tell(c *engine.Change) {
	shown := c.ToShow()
	for i := range shown.Steps {
		s := &shown.Steps[i]
		if s.Outcome.Incomplete() {
			o.once("%s: %s: %s %s: %v", c.Target.Origin, c.Subject, s.Rule, s.Outcome, s.Err)
		}
	}
}

// once prints an error only in the first round that has it.
func (o *options) once(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !o.told[text] {
		o.told[text] = true
		fmt.Fprintf(o.ErrOut, "error: %s\n", text)
	}
}

// cutLine cuts the line off an origin.
func cutLine(origin string) (path, line string) {
	i := strings.LastIndexByte(origin, ':')
	if i < 0 {
		return origin, ""
	}
	return origin[:i], origin[i+1:]
}

// finish shows or writes the files, and returns the exit code.
func (o *options) finish(ctx context.Context, s evaluation.Summary) (int, error) {
	changed, objects, refused := 0, 0, 0
	if v := o.overlay; v != nil {
		for _, i := range slices.Sorted(maps.Keys(v.left)) {
			refused++
			fmt.Fprintf(o.ErrOut, "error: %v; %s stays as it is\n", v.left[i], v.built[i].Key)
		}
		files, err := v.files(ctx)
		if err != nil {
			return process.ExitNothing, err
		}
		for _, f := range files {
			o.files[f.path] = f
		}
		if len(files) > 0 {
			objects = len(v.wanted)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(o.files)) {
		f := o.files[path]
		if f.changed() && o.Write {
			f.refuse(f.write())
		}
		for _, i := range slices.Sorted(maps.Keys(f.left)) {
			fmt.Fprintf(o.ErrOut, "error: %v; %s stays as it is\n", f.left[i], f.first[i].Key)
		}
		if refused += len(f.left); f.refused != nil {
			refused++
			fmt.Fprintf(o.ErrOut, "error: %v; the file stays as it is\n", f.refused)
		}
		if !f.changed() {
			continue
		}
		changed++
		objects += f.objects()
		var err error
		switch {
		case o.Write || o.Check:
			_, err = fmt.Fprintln(o.Out, shownPath(path))
		default:
			_, err = io.WriteString(o.Out, f.diff(ctx, o.Explain))
		}
		if err != nil {
			return process.ExitIncomplete, err
		}
	}
	if !o.Quiet {
		fmt.Fprintln(o.ErrOut, o.sentence(s, changed, objects, refused))
	}
	switch {
	case o.failed || refused > 0:
		return process.ExitIncomplete, nil
	case changed > 0 && !o.Write:
		return process.ExitChanges, nil
	}
	return process.ExitOK, nil
}

// sentence sums up the run.
func (o *options) sentence(s evaluation.Summary, changed, objects, refused int) string {
	did, hint := "would change", "; --write changes them"
	if o.Write {
		did, hint = "changed", ""
	}
	if changed == 0 {
		hint = ""
	}
	text := fmt.Sprintf("%s evaluated: %s in %s %s%s", wording.PluralNumber(s.Objects, "object"),
		wording.PluralNumber(objects, "object"), wording.PluralNumber(changed, "file"), did, hint)
	if refused > 0 {
		text += fmt.Sprintf("; %s cannot be made", wording.PluralNumber(refused, "change"))
	}
	return text
}
