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

// Prompt asks the user before a run that writes and, where necessary, during it. It
// is safe for concurrent use: one question is asked at a time.
type Prompt struct {
	// Yes answers the question about the run, and no other.
	Yes bool
	// Confirmed reports that the user has confirmed the run before, so that it is not asked about.
	Confirmed bool
	// MaxChanges is how many objects a plain yes covers; 0 is not a limit.
	MaxChanges int
	// Meter is stopped while a question is open; it may be nil.
	Meter *wording.Meter

	mu       sync.Mutex
	in       *bufio.Reader
	out      io.Writer
	terminal bool
	cluster  cluster.Info
}

// NewPrompt asks on out and reads answers from in, if that is a terminal. The
// cluster is named in the question.
func NewPrompt(in io.Reader, out io.Writer, c cluster.Info) *Prompt {
	return &Prompt{in: bufio.NewReader(in), out: out, terminal: printers.IsTerminal(in), cluster: c}
}

var (
	errDeclined   = errors.New("nothing was written: not confirmed")
	errNoTerminal = errors.New("nothing was written: there is no terminal to ask on; use --yes to write without asking")
)

// TooManyError ends a run before its first write, because of more objects than may be written without a
// question.
type TooManyError struct{ Objects, Most int }

// Error counts them, and says what can be done.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("nothing was written: %d objects are more than --max-changes %d; raise it to write them", e.Objects, e.Most)
}

// ConfirmMany asks whether so many objects may be written, if they are more than MaxChanges. It wants the
// name of the context typed, so that the wrong cluster is not confirmed out of habit.
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

// ConfirmWord is Confirm with a word to type, which Yes does not answer.
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

// Confirm asks a question about a run. The error says that nothing was written because the answer was no, or
// there is no terminal to ask on.
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

// question asks whether to start the run: it names what is about to be written,
// where, and how many objects are left out.
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

// ConfirmLoss asks about one object of which the server would drop data; it is the
// Confirm of a Writer. Without a terminal the answer is no, and --yes is not an answer.
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

// readAnswer returns the line that the user types, or ErrInterrupted: a read from a terminal ends no sooner.
func (p *Prompt) readAnswer(ctx context.Context, question string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Meter.Stop()
	fmt.Fprint(p.out, question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1) // which a read that comes too late may still fill
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

// namespaces returns the namespaces of the objects with their counts, largest first:
// "shop 12", "(cluster) 3".
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

// UnwritableError ends a run before its first write, because of objects that cannot
// be written. Their results have been reported.
type UnwritableError struct {
	Unwritable int
	Objects    int // those that cannot be written, and those that could
	Causes     Causes
}

// Error counts them, and says what can be done.
func (e *UnwritableError) Error() string {
	return fmt.Sprintf("nothing was written: %s of %d cannot be written%s; fix them, or skip them with --skip-rejected",
		wording.Plural(e.Unwritable, "object"), e.Objects, e.Causes)
}

// confirm asks about what the verification found, and then about all of the run, of which so many objects
// were counted.
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
	if len(ready) > counted { // what was managed when it was shown is so no more
		if err := x.Prompt.ConfirmMany(ctx, len(ready)); err != nil {
			return nil, err
		}
	}
	return ready, x.Prompt.Confirm(ctx, x.Prompt.question(ready, x.tally.Failed+x.tally.LeftAlone))
}

// confirmMany asks about a run over more objects than MaxChanges, those that are left out because
// something else manages them not counted; the others are. What was confirmed before is not asked about.
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

// warnOfUnverified warns, once for each reason, of changes that were not tried.
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

// confirmLosses asks about each change by which the server would drop live data,
// and reports those that are not agreed to.
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
