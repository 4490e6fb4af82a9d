package plugin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
)

// Prompt asks the user before and, where it must, during a run that writes.
type Prompt struct {
	// Yes answers the question that starts the run, and no other.
	Yes bool

	in       *bufio.Reader
	out      io.Writer
	terminal bool
	cluster  string
}

// NewPrompt asks on out and reads answers from in, if that is a terminal. The
// cluster is named in the question.
func NewPrompt(in io.Reader, out io.Writer, cluster string) *Prompt {
	return &Prompt{in: bufio.NewReader(in), out: out, terminal: printers.IsTerminal(in), cluster: cluster}
}

var (
	errDeclined   = errors.New("nothing was written: not confirmed")
	errNoTerminal = errors.New("nothing was written: there is no terminal to ask on; --yes writes without asking")
)

// all asks the question that starts the run: what is about to be written, and where.
func (p *Prompt) all(work []pending) error {
	if p.Yes {
		return nil
	}
	if !p.terminal {
		return errNoTerminal
	}
	in := namespaces(work)
	yes, err := p.ask(fmt.Sprintf("Write %s in %s (%s) of %s?",
		plural(len(work), "object"), plural(len(in), "namespace"), strings.Join(in, ", "), p.cluster))
	if err == nil && !yes {
		return errDeclined
	}
	return err
}

// one asks about a single object while the run is under way; it is what a Writer
// wants of its Confirm. Without a terminal, live data is never lost, and an object
// that changed meanwhile is written as it is evaluated now if the user said --yes.
func (p *Prompt) one(_ context.Context, r apply.Result, q apply.Question) (bool, error) {
	switch {
	case !p.terminal:
		return q == apply.ChangedMeanwhile && p.Yes, nil
	case q == apply.LosesData:
		return p.ask(fmt.Sprintf("%s: the server would drop %s. Write all the same?", r.Key, strings.Join(r.Difference.Paths(), ", ")))
	case p.Yes:
		return true, nil
	}
	return p.ask(fmt.Sprintf("%s has changed since it was shown, and the change is another one now. Write it?", r.Key))
}

func (p *Prompt) ask(question string) (bool, error) {
	fmt.Fprintf(p.out, "\n%s [y/N]: ", question)
	answer, err := p.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// namespaces are those of the objects with their counts, the fullest first:
// "shop 12", "(cluster) 3".
func namespaces(work []pending) []string {
	counts := map[string]int{}
	for _, p := range work {
		counts[cmp.Or(p.target.Key.Namespace, "(cluster)")]++
	}
	names := make([]string, 0, len(counts))
	for ns := range counts {
		names = append(names, ns)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, ns := range names {
		names[i] = fmt.Sprintf("%s %d", ns, counts[ns])
	}
	return names
}
