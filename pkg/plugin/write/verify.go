package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// verification prepares the request to one endpoint: from reading the object to a dry run.
type verification struct {
	*Writer
	key     engine.ObjectKey
	listed  *unstructured.Unstructured // instead of a read; may be nil
	want    Want
	input   request.Input
	request request.Request
	answer  request.Answer // to the dry run
	out     Verified
}

// verifyOnce runs the steps once. errStale asks for another round: the object has changed or disappeared
// since it was read.
func (w *Writer) verifyOnce(ctx context.Context, key engine.ObjectKey, listed *unstructured.Unstructured,
	want Want,
) (*Verified, error) {
	t := verification{Writer: w, key: key, listed: listed, want: want}
	err := t.run(ctx)
	t.leaveManaged()
	out := t.out // without the objects of the verification
	return &out, err
}

func (t *verification) run(ctx context.Context) error {
	t.out = Verified{Result: Result{Key: t.key, Method: request.None}, want: t.want}
	for _, step := range []func(context.Context) (Outcome, error){t.read, t.plan, t.rehearse, t.decide} {
		outcome, err := step(ctx)
		if err == nil && outcome == "" {
			continue
		}
		t.out.Outcome = outcome
		if err != nil {
			err = t.out.fail(err)
		}
		return err
	}
	t.out.Outcome = Planned
	return nil
}

// leaveManaged sets the outcome of a managed object, even if the manager is new.
func (t *verification) leaveManaged() {
	if t.IncludeManaged || t.out.Outcome != Planned && !t.out.Outcome.Rejection() {
		return
	}
	if by := impact.Managed(t.out.Before); len(by) > 0 {
		t.out.because(Managed, &ManagedError{By: by[0].String(), Source: by[0].Source})
	}
}

// errStale is the server's 409 or 404 to a request that was valid when the object was read.
var errStale = errors.New("the object has changed meanwhile")

// errIgnored ends the verification of an object that rules meanwhile ignore.
var errIgnored = errors.New("ignored")

// fail sorts errors: the server's errors about this object are results, others end the run.
func (r *Result) fail(err error) error {
	var ofObject *ObjectError
	var drift *plan.Drift
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errStale):
		return err
	case errors.Is(err, errIgnored):
		r.Outcome = Ignored
	case errors.As(err, &drift):
		r.because(Drifted, drift)
	case errors.As(err, &ofObject):
		r.because(Failed, ofObject.Err)
	case errors.As(err, &status) && !apierrors.IsUnauthorized(err):
		r.because(Failed, &RejectedError{Text: redact.ServerError(err), Err: err})
	default:
		return fmt.Errorf("%s: %w", r.Key, err)
	}
	return nil
}

func (r *Result) because(o Outcome, why error) {
	r.Outcome, r.Err = o, &ObjectError{Key: r.Key, Err: why}
}

// read gets the object, and checks that it is still the same one.
func (t *verification) read(ctx context.Context) (_ Outcome, err error) {
	live := t.listed
	if live == nil {
		live, err = t.Server.Get(ctx, readable(t.key))
	}
	switch {
	case apierrors.IsNotFound(err):
		return Deleted, nil
	case err != nil:
		return "", err
	}
	t.out.Before, t.out.After = live, live
	if t.key.UID != "" && t.key.UID != live.GetUID() {
		return Replaced, nil
	}
	t.key.UID = live.GetUID()
	t.out.Key.UID = t.key.UID
	t.out.Version = live.GetResourceVersion()
	if live.GetDeletionTimestamp() != nil {
		return Terminating, nil
	}
	t.out.OwnersUnknown = len(live.GetManagedFields()) == 0
	t.input = request.Input{Live: live, Subresource: t.key.Subresource, Manager: t.Manager}
	return "", nil
}

// readable is the key for reading: the object contains its status, and more users may read it.
func readable(key engine.ObjectKey) engine.ObjectKey {
	if key.Subresource == request.StatusSubresource {
		key.Subresource = ""
	}
	return key
}

// plan gets the wanted object and the request for it.
func (t *verification) plan(ctx context.Context) (Outcome, error) {
	var err error
	if t.input.After, err = t.want(ctx, t.input.Live, ""); err != nil {
		return "", err
	}
	if t.input.Types, err = t.Server.Types(ctx, t.input.Live.GroupVersionKind(), false); err != nil {
		return "", err
	}
	if err := t.setRequest(t.planRequest()); err != nil {
		return "", err
	}
	switch {
	case t.request.Method == request.None:
		return Unchanged, nil
	case t.DryRun == DryRunClient:
		t.out.After = t.request.Want
		return Planned, nil
	}
	return "", nil
}

// planRequest prefers server-side apply if possible and wanted.
func (t *verification) planRequest() (request.Request, error) {
	if !t.PatchOnly.None() {
		return request.PlanJSONPatch(t.input, t.PatchOnly)
	}
	return request.Plan(t.input)
}

func (t *verification) setRequest(r request.Request, err error) error {
	if err != nil {
		return &ObjectError{Key: t.key, Err: err}
	}
	t.request = r
	t.out.Method, t.out.Reason = r.Method, r.Reason
	t.out.Changed, t.out.Removed = r.Changed, r.Removed
	if t.out.Touched = (diff.Partial{}); r.Method != request.None {
		typ := diff.NewType(t.input.Types, t.input.Live.GroupVersionKind())
		t.out.Touched = diff.Between(t.input.Live, r.Want, typ)
	}
	t.out.patch = cluster.Patch{
		Type: types.JSONPatchType, Body: r.Body, FieldManager: t.Manager, Quiet: t.quiet,
	}
	if r.Method == request.Apply {
		// The response to the dry run decides whose fields may be taken; without force, a stale object would look
		// like a conflict with its writer.
		t.out.patch.Type, t.out.patch.Force = types.ApplyPatchType, true
	}
	return nil
}

// rehearse sends the request as a dry run. If server-side apply would lose data, the schema may be outdated
// and is read again; after that, and if the server cannot apply, it uses a JSON patch.
func (t *verification) rehearse(ctx context.Context) (Outcome, error) {
	for refreshed := false; ; refreshed = true {
		answer, err := t.dryRun(ctx)
		if t.request.Method == request.Apply && cluster.IsMergeFailure(err) {
			err = t.setRequest(request.PlanJSONPatch(t.input, request.Reason{Kind: request.ApplyRefused}))
			if err == nil {
				continue
			}
		}
		if refusesDryRun(err) {
			return t.withoutDryRun(err)
		}
		if err != nil {
			return "", err
		}
		if err := t.readAnswer(answer); err != nil {
			return "", err
		}
		lost := t.out.Difference.Of(request.Lost)
		if len(lost) == 0 || t.request.Method == request.JSONPatch {
			return "", nil
		}
		if err := t.replan(ctx, refreshed, lost); err != nil {
			return "", err
		}
	}
}

func (t *verification) dryRun(ctx context.Context) (*unstructured.Unstructured, error) {
	p := t.out.patch
	p.DryRun = true
	answer, err := t.Server.Patch(ctx, t.key, p)
	if t.stale(ctx, &t.out, err) {
		return nil, errStale
	}
	return answer, err
}

func isStale(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// replan handles a server-side apply whose dry run loses data.
func (t *verification) replan(ctx context.Context, refreshed bool, lost request.Difference) error {
	if refreshed {
		why := request.Reason{Kind: request.ApplyLoses, Detail: lost.Paths()[0]}
		return t.setRequest(request.PlanJSONPatch(t.input, why))
	}
	var err error
	if t.input.Types, err = t.Server.Types(ctx, t.input.Live.GroupVersionKind(), true); err != nil {
		return err
	}
	return t.setRequest(request.Plan(t.input))
}

// refusesDryRun recognizes the error of an API server with admission webhooks that have side effects, which
// it does not call in a dry run (k8s.io/apiserver/pkg/admission/plugin/webhook/errors,
// NewDryRunUnsupportedErr). It has no reason of its own, only a message.
func refusesDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// withoutDryRun continues without a response: the fields of the request determine the takeovers.
func (t *verification) withoutDryRun(why error) (Outcome, error) {
	t.out.Unverified = &ObjectError{Key: t.key, Err: errors.New(redact.ServerError(why))}
	t.out.After = t.request.Want
	var err error
	if t.out.Takeovers, err = request.ForecastTakeovers(t.request); err != nil {
		return "", &ObjectError{Key: t.key, Err: err}
	}
	return t.checkOwners()
}

// readAnswer records the dry run's response.
func (t *verification) readAnswer(answer *unstructured.Unstructured) error {
	var err error
	t.out.After, t.answer = answer, request.Classify(t.request, answer)
	t.out.Difference = t.answer.Difference
	if t.out.Takeovers, err = request.Takeovers(t.request, answer); err != nil {
		return &ObjectError{Key: t.key, Err: err}
	}
	t.out.keepAnswer(answer)
	t.out.effect = diff.Partial{}
	if t.answer.AsWanted {
		return nil
	}
	typ := diff.NewType(t.input.Types, t.input.Live.GroupVersionKind())
	if effect := diff.Between(t.input.Live, answer, typ); !slices.EqualFunc(effect.Fields, t.out.Touched.Fields,
		func(x, y engine.FieldChange) bool {
			return x.Kind == y.Kind && x.Path.Equals(y.Path)
		}) {
		t.out.effect = effect
	}
	return nil
}

// decide decides from the response whether there is anything to write, and whether it may be written.
func (t *verification) decide(context.Context) (Outcome, error) {
	if t.out.Unverified != nil {
		return "", nil
	}
	switch {
	case t.answer.Unchanged && t.out.Difference.Expected() && t.request.Removed.Empty():
		return Unchanged, nil
	case t.answer.Unchanged: // also if the server restores removed values
		return ServerKeepsValue, nil
	}
	if refused := t.out.Difference.Of(request.Refused); len(refused) > 0 {
		return "", &ObjectError{Key: t.key, Err: fmt.Errorf("the server ignores %s; nothing was written", strings.Join(refused.Paths(), ", "))}
	}
	return t.checkOwners()
}

// checkOwners stops if the manager of a field would set it back, and the user did not allow to take it.
func (t *verification) checkOwners() (Outcome, error) {
	var contested []request.Takeover
	for _, o := range t.out.Takeovers {
		if o.Verdict == request.Contested && !t.ForceConflicts && !slices.Contains(t.TakeFrom, o.Manager) {
			contested = append(contested, o)
		}
	}
	if len(contested) == 0 {
		return "", nil
	}
	t.out.because(Conflicted, &ConflictError{Takeovers: contested})
	return Conflicted, nil
}
