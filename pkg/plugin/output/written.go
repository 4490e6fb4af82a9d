package output

import (
	"errors"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// The strings about a Written are the same in all printers, and neither masked nor escaped.

// ToShow returns the result as it may be shown: without details of a change derived from a Secret, except
// who owns its fields.
func (w Written) ToShow() Written {
	out := *w.Result
	switch {
	case len(w.Secrets) > 0:
		out = shownResult(out)
	case w.Key.IsSecret():
		out.Touched = redact.Partial(out.Touched, out.Key)
	default:
		return w
	}
	out.Before, out.After = nil, nil
	if out.Status != nil {
		status := *out.Status
		status.Secrets = out.Secrets
		status = *Written{&status}.ToShow().Result
		out.Status = &status
	}
	return Written{&out}
}

func shownResult(r write.Result) write.Result {
	r.Err, r.Unverified = hidden(&r, r.Err), hidden(&r, r.Unverified)
	r.Touched = redact.Hidden(redact.MarkedBy(r.Secrets, r.Touched, r.Key))
	r.Takeovers = shownTakeovers(&r, r.Takeovers)
	r.Difference = r.Difference.Shown(r.ShownPath)
	r.Drift = slices.Clone(r.Drift)
	for i, p := range r.Drift {
		r.Drift[i] = r.ShownPath(p)
	}
	return r
}

func shownTakeovers(r *write.Result, all []request.Takeover) []request.Takeover {
	out := make([]request.Takeover, len(all))
	for i, t := range all {
		out[i] = t.Shown(r.ShownPath)
	}
	return out
}

func hidden(r *write.Result, err error) error {
	var conflict *write.ConflictError
	var managed *write.ManagedError
	var busy *write.BusyError
	switch {
	case errors.As(err, &conflict):
		return &write.ObjectError{
			Key: r.Key,
			Err: &write.ConflictError{Takeovers: shownTakeovers(r, conflict.Takeovers)},
		}
	case err == nil, errors.As(err, &managed), errors.As(err, &busy):
		return err
	}
	return engine.ErrHidden
}

// Verb returns what was done, in kubectl's words if it has any: "patched".
func (w Written) Verb() string {
	switch w.Outcome {
	case write.Applied, write.Planned:
		if w.Method == request.JSONPatch {
			return "patched"
		}
		return "serverside-applied"
	case write.Deleted:
		return "skipped (deleted meanwhile)"
	case write.Replaced:
		return "skipped (replaced meanwhile)"
	case write.Terminating:
		return "skipped (terminating)"
	case write.Managed:
		return "left alone"
	case write.ServerKeepsValue:
		return "unchanged (the server keeps its value)"
	}
	return string(w.Outcome)
}

// Sentence returns the Verb, and why the object is not as wanted: "conflicted: conflict with ...".
func (w Written) Sentence() string {
	switch {
	case w.Err != nil:
		return w.Verb() + ": " + w.Explanation()
	case w.Status != nil && w.Status.Err != nil:
		return w.Verb() + ", but not its status: " + Written{w.Status}.Explanation()
	}
	return w.Verb()
}

// Explanation returns why an object is not as wanted, and what to change instead.
func (w Written) Explanation() string {
	text := cause(w.Err).Error()
	if w.Instead != "" {
		text += "; change " + w.Instead + " instead"
	}
	return text
}

// Cause returns why an object is not as wanted, without its name; nil if it is as wanted.
func (w Written) Cause() error { return cause(w.Err) }

// UnverifiedCause returns why there was no dry run, without the name of the object; nil after one.
func (w Written) UnverifiedCause() error { return cause(w.Unverified) }

func cause(err error) error {
	var o *write.ObjectError
	if errors.As(err, &o) {
		return o.Err
	}
	return err
}

// Message returns the server's objection, or else the Cause; empty for an object that was written.
func (w Written) Message() string {
	err := w.Err
	if err == nil && w.Status != nil {
		err = w.Status.Err
	}
	var rejected *write.RejectedError
	switch {
	case errors.As(err, &rejected):
		return rejected.Text
	case err != nil:
		return cause(err).Error()
	case w.RuleStatus() == Completed && w.Outcome == write.Applied:
		return ""
	}
	return w.Verb()
}

// Notes returns remarks on a successful write: the managers whose fields it took, unless they no longer set
// them, and what the server made of it.
func (w Written) Notes() []string {
	var out []string
	if w.Earlier {
		out = append(out, "before the run was resumed")
	}
	for _, t := range w.Takeovers {
		if t.Verdict != request.Silent {
			out = append(out, "was set by "+t.String())
		}
	}
	out = append(out, w.Differences()...)
	if w.Unverified != nil {
		out = append(out, "not verified by a dry run: "+w.UnverifiedCause().Error())
	}
	if w.Found {
		out = append(out, "the response to the write was lost, but the object has the change")
	}
	if len(w.Drift) > 0 {
		out = append(out, "the write returned other values than its dry run: "+paths(w.Drift))
	}
	if w.OwnersUnknown {
		out = append(out, "the object does not record who set its fields, so conflicts could not be checked")
	}
	return out
}

// Differences returns what the server changed beyond the request.
func (w Written) Differences() []string {
	var out []string
	if set := w.Difference.Of(request.Overridden); len(set) > 0 {
		out = append(out, "the server set another value: "+strings.Join(set.Paths(), ", "))
	}
	if set := w.Difference.Of(request.Defaulted); len(set) > 0 {
		out = append(out, "the server also sets "+engine.Few(set.Paths()))
	}
	return out
}

func paths(list []fieldpath.Path) string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = engine.PathString(p)
	}
	return strings.Join(out, ", ")
}

// RuleStatus is the outcome of a rule on a target, in the words of Kyverno's UpdateRequests.
type RuleStatus string

// The statuses. Kyverno has no Skipped: the target was deleted, is left to its manager, or the run ended
// before.
const (
	Completed RuleStatus = "Completed"
	Failed    RuleStatus = "Failed"
	Skipped   RuleStatus = "Skipped"
)

// RuleStatus returns the outcome of the rules that make the change.
func (w Written) RuleStatus() RuleStatus {
	switch {
	case w.Outcome == write.Managed:
		return Skipped
	case w.Err != nil, w.Status != nil && w.Status.Err != nil:
		return Failed
	case w.Outcome.Reached():
		return Completed
	}
	return Skipped
}

// Conflicts groups by manager the fields that prevented writes.
type Conflicts []*Conflict

// Conflict is what one manager owns of the objects that were not written.
type Conflict struct {
	Manager string   `json:"manager"`
	Owner   string   `json:"owner"`
	Objects int      `json:"objects"`
	Fields  []string `json:"fields"`
	Flag    string   `json:"flag"` // that takes the fields over
	// Autoscalers set the fields back even when they are taken over.
	Autoscalers []string `json:"autoscalers,omitempty"`
}

// Add adds the fields that prevented the write of an object.
func (c *Conflicts) Add(w Written) {
	var err *write.ConflictError
	if w.Outcome != write.Conflicted || !errors.As(w.Err, &err) {
		return
	}
	for _, t := range err.Takeovers {
		one := c.conflictWith(t)
		one.Objects++
		for p := range t.Fields.Leaves().All() {
			if name := engine.PathString(p); !slices.Contains(one.Fields, name) {
				one.Fields = append(one.Fields, name)
			}
		}
		for _, i := range w.Autoscaled {
			if ownsAny(t, i.Fields) && !slices.Contains(one.Autoscalers, i.Owner) {
				one.Autoscalers = append(one.Autoscalers, i.Owner)
			}
		}
	}
}

// ownsAny reports whether a manager owns one of the fields, or a part of it.
func ownsAny(t request.Takeover, fields []fieldpath.Path) bool {
	return slices.ContainsFunc(fields, func(p fieldpath.Path) bool {
		for owned := range t.Fields.Leaves().All() {
			if len(owned) >= len(p) && owned[:len(p)].Equals(p) {
				return true
			}
		}
		return false
	})
}

func (c *Conflicts) conflictWith(t request.Takeover) *Conflict {
	for _, known := range *c {
		if known.Owner == t.Owner() {
			return known
		}
	}
	*c = append(*c, &Conflict{Manager: t.Manager, Owner: t.Owner(), Flag: "--take-from=" + t.Manager})
	return (*c)[len(*c)-1]
}
