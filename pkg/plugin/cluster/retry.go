package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// DefaultBackoff allows ten attempts, with 8 to 16 seconds of waits between them.
func DefaultBackoff() wait.Backoff {
	return wait.Backoff{
		Duration: 25 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10,
		Cap: 2500 * time.Millisecond,
	}
}

// maxRetryAfter is the longest honoured Retry-After: a server that asks for more will not respond in this
// run.
const maxRetryAfter = time.Minute

// Retry makes a call until it succeeds, fails in a way that waiting does not fix, or after which again is
// false, or has been made as often as the Backoff says; a nil again stands for one that is always true. Waits
// are those of the Backoff, after the Retry-After of the server. The error is that of the last call, or of a
// context that ended meanwhile.
//
// client-go's own retries are not used for what is written: they repeat every
// request, writes as well, to which the server answers with a Retry-After.
func Retry(ctx context.Context, p *Patience, again func(error) bool, call func() error) error {
	for attempts := NewAttempts(p); ; {
		err := call()
		if err == nil {
			attempts.Succeeded()
		}
		if err == nil || again != nil && !again(err) || !retryable(ctx, err) {
			return err
		}
		if err := attempts.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// retryRead repeats a read if the server is busy, fails, or interrupts its response: a run over many objects
// must not end at the first of these. Only a RetryingClient waits for a server that cannot be reached or does
// not respond in time: a wrong address is more likely than a restart. After Answers, such a server gets no
// more requests.
func (c *Client) retryRead(ctx context.Context, read func() error) error {
	if c.patience != nil {
		return Retry(ctx, c.patience, nil, read)
	}
	if silent := c.silent.Load(); silent != nil {
		return *silent
	}
	late := func(err error) bool { return timedOut(err) || c.hasToAnswer && apierrors.IsTimeout(err) }
	err := Retry(ctx, readPatience(), func(err error) bool {
		var network *net.OpError
		var untrusted *tls.CertificateVerificationError
		return !(errors.As(err, &network) && network.Op == "dial") && !errors.As(err, &untrusted) && !late(err)
	}, read)
	if ctx.Err() == nil && c.hasToAnswer && late(err) && !transport.IsTooLarge(err) {
		c.silent.Store(&err)
	}
	return err
}

// timedOut reports whether the server did not respond in time.
func timedOut(err error) bool {
	var network net.Error // also the error of a context
	return errors.As(err, &network) && network.Timeout() || transport.IsLimit(err)
}

// readPatience ends within a second: a run begins with many reads, and an unavailable aggregated API must not
// delay it.
func readPatience() *Patience {
	p := &Patience{Backoff: DefaultBackoff()}
	p.Backoff.Steps = 5
	return p
}

// Patience is what the calls of a run share: once a few of them have been repeated in vain for one cause,
// such as a webhook that cannot be called, a call that fails for it is not repeated. It is safe for
// concurrent use; nil is that of one call.
type Patience struct {
	// Backoff is between the attempts of a call; without Steps it is DefaultBackoff.
	Backoff wait.Backoff
	// Waiting, if set, is called with the cause for which a call is going to be repeated.
	Waiting func(cause string)

	mu     sync.Mutex
	inVain map[string]int // calls, by cause, since one that it helped to repeat
	hung   error          // of the last of them that took long
}

// enoughInVain limits the calls that are repeated in vain for one cause.
const enoughInVain = 3

// ended notes that a call was repeated for a cause, and whether that helped, or was given up since it hung.
func (p *Patience) ended(cause string, helped bool, hung error) {
	if cause == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inVain == nil {
		p.inVain = map[string]int{}
	}
	p.hung = cmp.Or(hung, p.hung)
	if p.inVain[cause]++; helped {
		delete(p.inVain, cause)
	}
}

// stuck returns the error of earlier calls that hung in vain; nil if there were too few.
func (p *Patience) stuck() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inVain[Cause(p.hung)] < enoughInVain {
		return nil
	}
	return p.hung
}

// allows reports whether a call is repeated for a cause.
func (p *Patience) allows(cause string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inVain[cause] >= enoughInVain {
		return false
	}
	if p.Waiting != nil {
		p.Waiting(cause)
	}
	return true
}

// webhook matches the message of an API server that cannot call a webhook (k8s.io/apiserver/pkg/util/webhook,
// ErrCallingWebhook).
var webhook = regexp.MustCompile(`failed calling webhook "([\w./-]+)"`)

// noAnswer is the Cause of errors without a response.
const noAnswer = "the server does not answer"

// Cause says briefly why a request failed that may succeed later; it is empty for errors of the request
// itself.
func Cause(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil, IsMergeFailure(err):
		return ""
	case !errors.As(err, &status):
		if Uncertain(context.Background(), err) {
			return noAnswer
		}
		return ""
	}
	code := status.Status().Code
	if name := webhook.FindStringSubmatch(status.Status().Message); name != nil &&
		code >= http.StatusInternalServerError {
		return "webhook " + name[1] + " cannot be called"
	}
	switch {
	case code == http.StatusTooManyRequests:
		return "the server is overloaded (429)"
	case code >= http.StatusInternalServerError:
		return fmt.Sprintf("the server fails (%d)", code)
	}
	return ""
}

// Attempts counts the attempts of one call, for a caller that does more between them than wait.
type Attempts struct {
	left     int
	delay    wait.DelayFunc
	patience *Patience
	cause    string        // of the last failure
	begun    time.Time     // of the first attempt
	waited   time.Duration // between attempts
}

// maxAnswering limits the server's total time for the attempts of a call before the last, so that a request
// that hangs, such as in a webhook, is repeated less often than a request that fails at once.
const maxAnswering = 30 * time.Second

// NewAttempts starts the count.
func NewAttempts(p *Patience) *Attempts {
	if p == nil {
		p = &Patience{}
	}
	b := p.Backoff
	if b.Steps == 0 {
		b = DefaultBackoff()
	}
	return &Attempts{left: b.Steps, delay: b.DelayFunc(), patience: p, begun: time.Now()}
}

// Succeeded records that the call succeeded.
func (a *Attempts) Succeeded() { a.patience.ended(a.cause, true, nil) }

// Wait waits before the next attempt. It returns the error of the last attempt if it was the final one, or of
// a context that ended meanwhile.
func (a *Attempts) Wait(ctx context.Context, last error) error {
	seconds, _ := apierrors.SuggestsClientDelay(last)
	after := time.Duration(seconds) * time.Second
	a.cause = Cause(last)
	switch a.left--; {
	case time.Since(a.begun)-a.waited >= maxAnswering:
		a.patience.ended(a.cause, false, last)
		return last
	case a.left <= 0, after > maxRetryAfter:
		a.patience.ended(a.cause, false, nil)
		return last
	case !a.patience.allows(a.cause):
		return last
	}
	after += a.delay()
	a.waited += after
	if !Pause(ctx, after) {
		return ctx.Err()
	}
	return nil
}

// Pause waits, and reports whether the context is still active.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// retryable reports whether the same call may succeed later: the server or the connection is overloaded or
// broken. Errors of the request (not found, invalid, forbidden, conflict) are final.
func retryable(ctx context.Context, err error) bool {
	return Uncertain(ctx, err) && !transport.IsLimit(err) || ctx.Err() == nil && apierrors.IsTooManyRequests(err)
}

// Uncertain reports whether the outcome of a request is unknown: no response came, or only a proxy's.
func Uncertain(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil || ctx.Err() != nil:
		return false
	case errors.As(err, &status):
		return status.Status().Code >= http.StatusInternalServerError
	}
	var network net.Error // also a *url.Error
	return transport.IsLimit(err) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) ||
		strings.Contains(err.Error(), connectionGone)
}

// Unsettled reports whether the outcome of a write is unknown: it is Uncertain, or a successful response is
// not the object, or is a redirect to another server.
func Unsettled(ctx context.Context, err error) bool {
	var answer *AnswerError
	var redirect *transport.RedirectError
	return Uncertain(ctx, err) || ctx.Err() == nil && (errors.As(err, &answer) || errors.As(err, &redirect))
}

// connectionGone is in the untyped errors of net/http for an HTTP/2 connection that ends during a response
// (http2errClientConnForceClosed and closeForLostPing in its h2_bundle.go).
const connectionGone = "http2: client connection "

// IsMergeFailure reports whether an error is the status 500 of a server that cannot merge an apply
// configuration. A retry does not help. Unlike other errors 500 it has no reason
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters, ErrorToAPIStatus).
func IsMergeFailure(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError &&
		status.Status().Reason == ""
}

// RetryingClient sends the requests of a run that writes. It repeats reads, dry runs, and writes that the
// server has not begun (429). Any other write is sent once: its caller looks up the outcome.
//
// It waits longer than other Clients: a preview can be repeated, but a run that writes should outlast a
// restart of the server.
type RetryingClient struct{ *Client }

// Retrying returns the client of a run that writes, with the run's Patience, which must not be nil.
func (c *Client) Retrying(p *Patience) RetryingClient {
	return RetryingClient{&Client{c.connection, p}}
}

// hurry limits the server's time for a dry run after others hung.
const hurry = time.Second

// Patch sends a patch as Client.Patch does. After others hung, a patch without a quick response counts as
// hanging for the same reason.
func (c RetryingClient) Patch(ctx context.Context, key engine.ObjectKey,
	p Patch,
) (object *unstructured.Unstructured, err error) {
	again := func(answer error) bool {
		final := p.Type == types.ApplyPatchType && IsMergeFailure(answer)
		return p.DryRun && !final || apierrors.IsTooManyRequests(answer)
	}
	err = Retry(ctx, c.patience, again, func() error {
		stuck := c.patience.stuck()
		if p.DryRun && stuck != nil {
			p.Within = hurry
		}
		if object, err = c.Client.Patch(ctx, key, p); p.Within > 0 &&
			(apierrors.IsTimeout(err) || Cause(err) == noAnswer) {
			err = stuck
		}
		return err
	})
	return object, err
}

// ReportClient writes reports. Its Client can write only these: Options.But has their resources.
type ReportClient struct {
	*Client
	// FieldManager owns the written fields.
	FieldManager string
}

// Apply sends a server-side apply, which takes all fields of the object.
func (c *ReportClient) Apply(ctx context.Context, key engine.ObjectKey, body []byte) error {
	_, err := c.Retrying(&Patience{}).Patch(ctx, key,
		Patch{Type: types.ApplyPatchType, Body: body, FieldManager: c.FieldManager, Force: true})
	return err
}

// Delete deletes the object with a UID, without retries.
func (c *ReportClient) Delete(ctx context.Context, key engine.ObjectKey, uid types.UID) error {
	segments, err := c.pathOf(ctx, key)
	if err != nil {
		return err
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil {
		return err
	}
	_, err = c.do(ctx, http.MethodDelete, c.rest.Delete().AbsPath(segments...).SetHeader("Content-Type",
		runtime.ContentTypeJSON).Body(body))
	return err
}
