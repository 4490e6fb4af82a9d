package write

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Prompt asks the user before and, if necessary, during a run that writes. It is safe for concurrent use:
// questions are asked one at a time.
type Prompt struct {
	// Yes answers only the question about the run.
	Yes bool
	// Confirmed reports that the user has already confirmed the run.
	Confirmed bool
	// MaxChanges is the number of objects that a plain yes covers; 0: no limit.
	MaxChanges int
	// Meter is stopped during a question; it may be nil.
	Meter *wording.Meter

	mu       sync.Mutex
	in       *bufio.Reader
	out      io.Writer
	terminal bool
	cluster  cluster.Info
}

// NewPrompt asks on out and reads answers from in, if that is a terminal. The question names the cluster.
func NewPrompt(in io.Reader, out io.Writer, c cluster.Info) *Prompt {
	return &Prompt{in: bufio.NewReader(in), out: out, terminal: printers.IsTerminal(in), cluster: c}
}

var (
	errDeclined   = errors.New("nothing was written: not confirmed")
	errNoTerminal = errors.New("nothing was written: there is no terminal to ask on; use --yes to write without asking")
)

// TooManyError ends a run before its first write because of more objects than allowed without a question.
type TooManyError struct{ Objects, Most int }

// Error gives the numbers and the remedy.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("nothing was written: %d objects are more than --max-changes %d; raise it to write them", e.Objects, e.Most)
}

// ConfirmMany asks about more than MaxChanges objects. The user has to type the context, so that habit does
// not confirm the wrong cluster.
func (p *Prompt) ConfirmMany(ctx context.Context, objects int) error {
	switch {
	case p.Confirmed, p.MaxChanges == 0, objects <= p.MaxChanges:
		return nil
	case p.Yes:
		return &TooManyError{Objects: objects, Most: p.MaxChanges}
	}
	return p.ConfirmWord(ctx, fmt.Sprintf("%s of %s would be written: more than --max-changes %d.", wording.Plural(objects, "object"), p.cluster, p.MaxChanges),
		cmp.Or(p.cluster.Context, p.cluster.Server))
}

// ConfirmWord is Confirm with a word to type; Yes does not answer it.
func (p *Prompt) ConfirmWord(ctx context.Context, question, word string) error {
	if !p.terminal {
		return errNoTerminal
	}
	answer, err := p.readAnswer(ctx,
		"\n"+redact.EscapeLine(fmt.Sprintf("%s Type %q to continue: ", question, word)))
	switch {
	case err != nil:
		return NothingWritten(err)
	case answer != word:
		return errDeclined
	}
	return nil
}

// Confirm asks a question about a run. The error reports that nothing was written: the answer was no, or
// there is no terminal.
func (p *Prompt) Confirm(ctx context.Context, question string) error {
	switch {
	case p.Yes, p.Confirmed:
		return nil
	case !p.terminal:
		return errNoTerminal
	}
	yes, err := p.ask(ctx, question)
	switch {
	case err != nil:
		return NothingWritten(err)
	case !yes:
		return errDeclined
	}
	return nil
}

// question asks whether to start the run, with the changes, the cluster, and the number of objects left out.
func (p *Prompt) question(ready []*Task, leftOut int) string {
	in := namespaces(ready)
	text := fmt.Sprintf("Write %s in %s (%s) of %s?",
		wording.Plural(len(ready), "object"), wording.Plural(len(in), "namespace"),
		strings.Join(in, ", "), p.cluster)
	unverified := 0
	for _, t := range ready {
		if t.verified.Unverified != nil {
			unverified++
		}
	}
	if unverified > 0 {
		text = fmt.Sprintf("%s not verified. %s", wording.Plural(unverified, "object"), text)
	}
	if leftOut > 0 {
		text = fmt.Sprintf("%s left out. %s", wording.Plural(leftOut, "object"), text)
	}
	return text
}

// ConfirmLoss asks about an object of which the server would drop data; it is a Writer's Confirm. Without a
// terminal the answer is no, and --yes does not answer it.
func (p *Prompt) ConfirmLoss(ctx context.Context, r Result) (bool, error) {
	if !p.terminal {
		return false, nil
	}
	return p.ask(ctx, fmt.Sprintf("%s: the server would drop %s. Write it anyway?", r.Key, strings.Join(r.Difference.Shown(r.ShownPath).Paths(), ", ")))
}

func (p *Prompt) ask(ctx context.Context, question string) (bool, error) {
	answer, err := p.readAnswer(ctx, "\n"+redact.EscapeLine(question)+" [y/N]: ")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}

// readAnswer returns the typed line, or ErrInterrupted: reading from a terminal cannot be cancelled.
func (p *Prompt) readAnswer(ctx context.Context, question string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Meter.Stop()
	fmt.Fprint(p.out, question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1) // a late read may still fill it
	go func() {
		text, err := p.in.ReadString('\n')
		typed <- line{text, err}
	}()
	select {
	case answer := <-typed:
		if answer.err != nil && !errors.Is(answer.err, io.EOF) {
			return "", fmt.Errorf("reading the answer: %w", answer.err)
		}
		return strings.TrimSpace(answer.text), nil
	case <-ctx.Done():
		fmt.Fprintln(p.out)
		return "", ErrInterrupted
	}
}

// namespaces counts the objects by namespace, largest first: "shop 12", "(cluster) 3".
func namespaces(tasks []*Task) []string {
	counts := map[string]int{}
	for _, t := range tasks {
		counts[cmp.Or(t.Key.Namespace, "(cluster)")]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, ns := range names {
		names[i] = fmt.Sprintf("%s %d", ns, counts[ns])
	}
	return names
}

// UnwritableError ends a run before its first write because of objects that cannot be written, whose results
// have been reported.
type UnwritableError struct {
	Unwritable int
	Objects    int // the unwritable and the writable ones
	Causes     Causes
}

// Error gives the numbers and the remedy.
func (e *UnwritableError) Error() string {
	return fmt.Sprintf("nothing was written: %s of %d cannot be written%s; fix them, or skip them with --skip-rejected",
		wording.Plural(e.Unwritable, "object"), e.Objects, e.Causes)
}

// confirm asks about the findings of the verification, and then about the whole run; counted objects are
// already confirmed.
func (x *Executor) confirm(ctx context.Context, ready []*Task, counted int) ([]*Task, error) {
	ready, err := x.confirmLosses(ctx, ready)
	switch {
	case err != nil:
		return nil, NothingWritten(err)
	case x.tally.Rejected > 0 && !x.Writer.SkipRejected:
		return nil, &UnwritableError{
			Unwritable: x.tally.Rejected, Objects: x.tally.Rejected + len(ready), Causes: x.tally.Causes,
		}
	case len(ready) == 0:
		return nil, nil
	}
	if x.OnVerified != nil {
		if err := x.OnVerified(); err != nil {
			return nil, err
		}
	}
	x.warnOfUnverified(ready)
	if len(ready) > counted { // managed objects that no longer are
		if err := x.Prompt.ConfirmMany(ctx, len(ready)); err != nil {
			return nil, err
		}
	}
	return ready, x.Prompt.Confirm(ctx, x.Prompt.question(ready, x.tally.Failed+x.tally.LeftAlone))
}

// confirmMany asks about more than MaxChanges objects, unless already confirmed, and returns their number
// without skipped managed objects.
func (x *Executor) confirmMany(ctx context.Context, tasks []*Task) (counted int, _ error) {
	for _, t := range tasks {
		t.managed, t.impacts = t.isShownManaged(), t.Entry.Impacts
		if x.Writer.IncludeManaged || !t.managed {
			counted++
		}
	}
	if x.IsDryRun() {
		return counted, nil
	}
	return counted, x.Prompt.ConfirmMany(ctx, counted)
}

// warnOfUnverified warns of changes without a dry run, once per reason.
func (x *Executor) warnOfUnverified(ready []*Task) {
	var unverified wording.Reasons
	for _, q := range ready {
		var why *ObjectError
		if errors.As(q.verified.Unverified, &why) {
			unverified.Add(q.Key, why.Err.Error())
		}
	}
	for _, why := range unverified.All() {
		fmt.Fprintf(x.ErrOut, "warning: %s: %s: not verified by a dry run; the server may still reject the write\n", why.Names(), why.Text)
	}
}

// confirmLosses asks about each change by which the server would drop live data, and reports the declined
// ones.
func (x *Executor) confirmLosses(ctx context.Context, ready []*Task) ([]*Task, error) {
	agreed := make([]*Task, 0, len(ready))
	for _, t := range ready {
		yes, err := x.Writer.ConfirmLoss(ctx, t.verified)
		if err == nil && !yes {
			err = x.report(t, &t.verified.Result)
		}
		if err != nil {
			return nil, err
		}
		if yes {
			agreed = append(agreed, t)
		}
	}
	return agreed, nil
}
