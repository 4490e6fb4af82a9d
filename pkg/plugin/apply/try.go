package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/intent"
)

// try is one endpoint's write, from reading to the server's answer, and what is
// remembered of the tries before.
type try struct {
	*Writer
	key     engine.ObjectKey
	want    Want
	retries int
	shown   *Result // what the first try would have done

	input   intent.Input
	request intent.Request
	result  Result
}

// run goes through the steps once. Stale asks for another round: the object has
// changed or gone since it was read.
func (t *try) run(ctx context.Context) (result Result, stale bool, err error) {
	t.result = Result{Key: t.key, Method: intent.None}
	steps := []func(context.Context) (Outcome, error){t.read, t.plan, t.rehearse, t.judge, t.confirm, t.store}
	for _, step := range steps {
		outcome, err := step(ctx)
		if errors.Is(err, errStale) {
			return t.result, true, nil
		}
		if err != nil {
			result, err := t.fail(err)
			return result, false, err
		}
		if outcome != "" {
			t.result.Outcome = outcome
			return t.result, false, nil
		}
	}
	return t.result, false, nil
}

// errStale is the server's 409, or 404, to a request that was right when the
// object was read.
var errStale = errors.New("the object has changed meanwhile")

// fail sorts errors: what the server says of this object is a result, anything
// else ends the run.
func (t *try) fail(err error) (Result, error) {
	var ofObject *ObjectError
	if errors.As(err, &ofObject) {
		return t.failed(ofObject.Err), nil
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.IsUnauthorized(err) {
		return t.failed(&RejectedError{Text: CleanServerError(err), Err: err}), nil
	}
	return t.result, fmt.Errorf("%s: %w", t.key, err)
}

func (t *try) failed(why error) Result { return t.withError(Failed, why) }

func (t *try) withError(o Outcome, why error) Result {
	t.result.Outcome, t.result.Err, t.result.Retries = o, &ObjectError{Key: t.key, Err: why}, t.retries
	return t.result
}

// read gets the object, and makes sure that it is still the one that was meant.
func (t *try) read(ctx context.Context) (Outcome, error) {
	key := t.key
	if key.Subresource == "status" {
		key.Subresource = "" // the same object, and readable for more users
	}
	live, err := t.Server.Get(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return Deleted, nil
	case err != nil:
		return "", err
	}
	t.result.Before, t.result.After = live, live
	if t.key.UID != "" && t.key.UID != live.GetUID() {
		return Replaced, nil
	}
	t.key.UID = live.GetUID()
	if live.GetDeletionTimestamp() != nil {
		return Terminating, nil
	}
	t.result.OwnersUnknown = !intent.OwnersKnown(live)
	t.input = intent.Input{Live: live, Subresource: t.key.Subresource, Manager: t.Manager}
	return "", nil
}

// plan asks how the object should be and finds the request for it.
func (t *try) plan(ctx context.Context) (Outcome, error) {
	var err error
	if t.input.After, err = t.want(ctx, t.input.Live); err != nil {
		return "", err
	}
	if t.input.Types, err = t.Server.Types(ctx, t.input.Live.GroupVersionKind(), false); err != nil {
		return "", err
	}
	if err := t.adopt(intent.Plan(t.input)); err != nil {
		return "", err
	}
	switch {
	case t.request.Method == intent.None:
		return Unchanged, nil
	case t.DryRun == DryRunClient:
		t.result.After = t.request.Want
		return Planned, nil
	}
	return "", nil
}

// adopt makes a planned request the one to send.
func (t *try) adopt(r intent.Request, err error) error {
	if err != nil {
		return &ObjectError{Key: t.key, Err: err}
	}
	t.request = r
	t.result.Method, t.result.Reason = r.Method, r.Reason
	t.result.Changed, t.result.Removed = r.Changed, r.Removed
	return nil
}

// rehearse sends the request as a dry run. Where server-side apply would lose
// data, the schema may be an old one, so it is read again; then, and where the
// server cannot apply at all, a JSON patch takes over.
func (t *try) rehearse(ctx context.Context) (Outcome, error) {
	for refreshed := false; ; refreshed = true {
		answer, err := t.send(ctx, true)
		if t.request.Method == intent.Apply && apierrors.IsInternalError(err) {
			err = t.adopt(intent.PlanJSONPatch(t.input, intent.Reason{Kind: intent.ApplyRefused}))
			if err == nil {
				continue
			}
		}
		if err != nil {
			return "", err
		}
		if err := t.compare(answer); err != nil {
			return "", err
		}
		lost := t.result.Difference.Of(intent.Lost)
		if len(lost) == 0 || t.request.Method == intent.JSONPatch {
			return "", nil
		}
		if err := t.replan(ctx, refreshed, lost); err != nil {
			return "", err
		}
	}
}

// replan answers a dry run of server-side apply that loses data.
func (t *try) replan(ctx context.Context, refreshed bool, lost intent.Difference) error {
	if refreshed {
		why := intent.Reason{Kind: intent.ApplyLoses, Detail: lost.Paths()[0]}
		return t.adopt(intent.PlanJSONPatch(t.input, why))
	}
	var err error
	if t.input.Types, err = t.Server.Types(ctx, t.input.Live.GroupVersionKind(), true); err != nil {
		return err
	}
	return t.adopt(intent.Plan(t.input))
}

// compare records what the dry run's answer says.
func (t *try) compare(answer *unstructured.Unstructured) error {
	var err error
	t.result.After = answer
	if t.result.Difference, err = intent.Classify(t.request, answer); err != nil {
		return &ObjectError{Key: t.key, Err: err}
	}
	if t.result.Takeovers, err = intent.Takeovers(t.request, answer); err != nil {
		return &ObjectError{Key: t.key, Err: err}
	}
	return nil
}

// judge decides from the answer whether there is anything to write, and whether
// it may be written.
func (t *try) judge(context.Context) (Outcome, error) {
	unchanged, err := intent.Unchanged(t.request, t.result.After)
	switch {
	case err != nil:
		return "", &ObjectError{Key: t.key, Err: err}
	case unchanged && t.result.Difference.Quiet():
		return Unchanged, nil
	case unchanged:
		return ServerKeepsValue, nil
	}
	if refused := t.result.Difference.Of(intent.Refused); len(refused) > 0 {
		return "", &ObjectError{Key: t.key, Err: &RefusedError{Refused: refused}}
	}
	contested := slices.DeleteFunc(slices.Clone(t.result.Takeovers), func(o intent.Takeover) bool {
		return o.Verdict != intent.Contested
	})
	if len(contested) > 0 && !t.ForceConflicts {
		t.withError(Conflicted, &ConflictError{Takeovers: contested})
		return Conflicted, nil
	}
	return "", nil
}

// confirm asks what the yes that started the run does not cover.
func (t *try) confirm(ctx context.Context) (Outcome, error) {
	if t.shown == nil {
		first := t.result
		t.shown = &first
	}
	lost := t.result.Difference.Of(intent.Lost)
	yes, err := len(lost) == 0, error(nil)
	switch {
	case t.Confirm == nil:
	case len(lost) > 0:
		yes, err = t.Confirm(ctx, t.result, LosesData)
	case !sameChange(t.shown, &t.result):
		yes, err = t.Confirm(ctx, t.result, ChangedMeanwhile)
	}
	switch {
	case err != nil:
		return "", err
	case !yes && len(lost) > 0:
		t.withError(Declined, &LossError{Lost: lost})
		return Declined, nil
	case !yes:
		return Declined, nil
	case t.DryRun == DryRunServer:
		return Planned, nil
	}
	return "", nil
}

// sameChange tells whether what was shown and what would be written now are the
// same fields, taken from the same owners.
func sameChange(a, b *Result) bool {
	return a.Changed.Equals(b.Changed) && a.Removed.Equals(b.Removed) &&
		slices.EqualFunc(a.Takeovers, b.Takeovers, func(x, y intent.Takeover) bool {
			return x.Owner() == y.Owner() && x.Fields.Equals(y.Fields)
		})
}

// store sends what was rehearsed.
func (t *try) store(ctx context.Context) (Outcome, error) {
	rehearsed := t.result.After
	written, err := t.send(ctx, false)
	if err != nil {
		return "", err
	}
	t.result.After = written
	if t.result.Drift, err = intent.Drift(rehearsed, written); err != nil {
		t.withError(Applied, err)
	}
	return Applied, nil
}

// send forces every apply: whose fields may be taken is decided from the answer
// to the dry run, and without force a stale object would look like a conflict
// with whoever wrote it.
func (t *try) send(ctx context.Context, dryRun bool) (*unstructured.Unstructured, error) {
	p := Patch{Type: types.JSONPatchType, Body: t.request.Body, FieldManager: t.Manager, DryRun: dryRun}
	if t.request.Method == intent.Apply {
		p.Type, p.Force = types.ApplyPatchType, true
	}
	answer, err := t.Server.Patch(ctx, t.key, p)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, errStale
	}
	return answer, err
}
