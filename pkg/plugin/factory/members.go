// This file runs the same on several clusters, side by side, and shows the results as one run.
//
// The events of each run are kept with the name of its cluster until all runs have ended, and then shown in
// the order of the clusters. A run does not know the others.

package factory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Member is one cluster, and the printer that keeps the events of its run. An output.Summary or
// output.Comparison ends the run.
type Member struct {
	Name, Server string
	// Answers returns an error if the server does not answer. It is called first, so that such a server takes
	// no turn.
	Answers func(context.Context) error
	// Run evaluates the cluster, and returns the exit code of a run on this cluster only. Its error and the
	// problems that it prints are why the result is incomplete.
	Run func(context.Context, *Member) (code int, err error)
	// Absent is set by Run if there was no object to evaluate, which may be on another cluster.
	Absent error
	// Blocked is set by Run if apply-existing would write nothing.
	Blocked string
	// Code and Err are the results of Run; Problems are those that it printed.
	Code     int
	Err      error
	Problems []error
	// End is the event that ended the run; nil if it broke off.
	End output.Event

	fleet *FleetRun
	ended bool
	kept  []output.Event
}

// FleetRun is several clusters.
type FleetRun struct {
	Members     []*Member
	AtOnce      int // maximum number of clusters that are read side by side
	ShowSecrets bool
	Meter       *wording.Meter // counts clusters and evaluated objects
	Ended       func(*Member)  // called for each cluster, one at a time; may be nil
}

// Gather runs all members, at most AtOnce side by side, and returns when all have ended. The error of a run
// is in its Err.
func (f *FleetRun) Gather(ctx context.Context) {
	f.Meter.Start()
	defer f.Meter.Stop()
	var all sync.WaitGroup
	turns := make(chan struct{}, max(f.AtOnce, 1))
	var ended sync.Mutex
	f.progress()
	for _, m := range f.Members {
		m.fleet = f
		all.Go(func() {
			m.Code, m.Err = m.run(ctx, turns)
			if errors.Is(m.Err, context.Canceled) {
				m.Err = write.ErrInterrupted
			}
			ended.Lock()
			defer ended.Unlock()
			m.ended = !process.Interrupted(m.Err)
			f.progress()
			if f.Ended != nil {
				f.Ended(m)
			}
		})
	}
	all.Wait()
}

// run runs the cluster after its server has answered, as soon as a turn is free.
func (m *Member) run(ctx context.Context, turns chan struct{}) (int, error) {
	if m.Answers != nil {
		if err := m.Answers(ctx); err != nil {
			return process.ExitNothing, err
		}
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return process.ExitInterrupted, ctx.Err()
	}
	return m.Run(ctx, m)
}

// progress shows how many clusters have ended, and which have not.
func (f *FleetRun) progress() {
	left := f.Unfinished()
	f.Meter.Did("clusters read", len(f.Members)-len(left), len(f.Members))
	f.Meter.WaitingFor(engine.Few(left))
}

// Unfinished returns the names of the clusters whose run has not ended or was interrupted.
func (f *FleetRun) Unfinished() (names []string) {
	for _, m := range f.Members {
		if !m.ended {
			names = append(names, m.Name)
		}
	}
	return names
}

// Print implements output.Printer: it keeps the event.
func (m *Member) Print(e output.Event) error {
	switch e := e.(type) {
	case output.Problem:
		m.Problems = append(m.Problems, e.Err)
		return nil
	case output.Summary, output.Comparison:
		m.End = e
		return nil
	}
	if e = kept(m.Name, output.Show(e, m.fleet.ShowSecrets).Event()); e != nil {
		m.fleet.Meter.Evaluated()
		m.kept = append(m.kept, e)
	}
	return nil
}

// Close implements output.Printer.
func (m *Member) Close() error { return nil }

// Replay emits the kept events: first the result of each cluster, then the objects cluster by cluster, then
// the distinct problems. The caller emits the events that end a run.
func (f *FleetRun) Replay(ctx context.Context, emit func(output.Event) error) error {
	all := output.Fleet{Clusters: make([]output.Cluster, len(f.Members))}
	for i, m := range f.Members {
		all.Clusters[i] = m.cluster()
	}
	if err := emit(all); err != nil {
		return err
	}
	for _, m := range f.Members {
		for _, e := range m.kept {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := emit(e); err != nil {
				return err
			}
		}
	}
	for _, err := range f.problems() {
		if err := emit(output.Problem{Err: err}); err != nil {
			return err
		}
	}
	return nil
}

// cluster returns the result of the cluster.
func (m *Member) cluster() output.Cluster {
	out := output.Cluster{Name: m.Name, Server: m.Server, Objects: len(m.kept)}
	problems := m.problems()
	out.Problems = len(problems)
	if len(problems) > 0 {
		out.Problem = problems[0].Error()
	}
	switch e := m.End.(type) {
	case output.Summary:
		out.Objects, out.Changed, out.Failed, out.Pods = e.Objects, e.Changed, e.Incomplete, e.Restarts.Pods
	case output.Comparison:
		out.Objects, out.Changed, out.Failed = e.Objects, e.Differing(), e.Verdicts[compare.NotComparable]
	}
	return out
}

func (m *Member) problems() []error {
	if m.Err == nil {
		return m.Problems
	}
	return append(slices.Clone(m.Problems), m.Err)
}

// ClustersError is a problem of one or more of several clusters.
type ClustersError struct {
	Clusters []string
	Err      error
}

// Error names the clusters.
func (e *ClustersError) Error() string { return strings.Join(e.Clusters, ", ") + ": " + e.Err.Error() }

// Unwrap returns the problem.
func (e *ClustersError) Unwrap() error { return e.Err }

// said collects messages of clusters, each once.
type said struct {
	all   []*ClustersError // in the order of arrival
	known map[string]*ClustersError
}

func (s *said) add(cluster string, err error) {
	if s.known == nil {
		s.known = map[string]*ClustersError{}
	}
	one := s.known[err.Error()]
	if one == nil {
		one = &ClustersError{Err: err}
		s.known[err.Error()], s.all = one, append(s.all, one)
	}
	if !slices.Contains(one.Clusters, cluster) {
		one.Clusters = append(one.Clusters, cluster)
	}
}

// problems returns the distinct problems of all clusters.
func (f *FleetRun) problems() []*ClustersError {
	var out said
	for _, m := range f.Members {
		for _, err := range m.problems() {
			out.add(m.Name, err)
		}
	}
	return out.all
}

// Objects counts the objects that were evaluated so far.
func (f *FleetRun) Objects() int {
	n := 0
	for _, m := range f.Members {
		n += m.cluster().Objects
	}
	return n
}

// Summary adds up the summaries of all clusters whose run has ended.
func (f *FleetRun) Summary() evaluation.Summary {
	out := evaluation.NewSummary(nil)
	for _, m := range f.Members {
		if e, ok := m.End.(output.Summary); ok {
			out.Join(&e.Summary)
		}
	}
	return *out
}

// Comparison adds up the comparisons of all clusters whose run has ended.
func (f *FleetRun) Comparison() compare.Summary {
	out := compare.Summary{Conclusion: compare.Nothing}
	for _, m := range f.Members {
		if e, ok := m.End.(output.Comparison); ok {
			out.Join(&e.Summary)
		}
	}
	out.Problems = len(f.problems())
	return out
}

// String says how the run of the cluster ended.
func (m *Member) String() string {
	c := m.cluster()
	if m.Err != nil {
		return m.Name + ": failed after " + wording.Plural(c.Objects, "object")
	}
	text := fmt.Sprintf("%s: %s, %d would change", m.Name, wording.Plural(c.Objects, "object"), c.Changed)
	if c.Failed+c.Problems > 0 {
		text += ", incomplete"
	}
	return text
}

// OnCluster returns an event of a run on one cluster as an event of a run on several, with the name of the
// cluster.
func OnCluster(cluster string, e output.Event) output.Event {
	switch e := e.(type) {
	case output.Evaluated:
		c := *e.Change
		c.Subject.Cluster = cluster
		return output.Evaluated{Change: &c}
	case output.Written:
		r := *e.Result
		r.Key.Cluster = cluster
		if r.Status != nil {
			status := *r.Status
			status.Key.Cluster = cluster
			r.Status = &status
		}
		return output.Written{Result: &r}
	case output.Problem:
		return output.Problem{Err: &ClustersError{Clusters: []string{cluster}, Err: e.Err}}
	}
	return e
}

// kept returns the parts of an event on a cluster that printers show; nil for other events.
func kept(cluster string, e output.Event) output.Event {
	switch e := e.(type) {
	case output.Evaluated:
		c := keptChange(e.Change, cluster)
		// No printer shows the server's own bookkeeping.
		c.Before, c.After = redact.Trim(c.Before, c.Fields, redact.Stored),
			redact.Trim(c.After, c.Fields, redact.Stored)
		if !c.Changed() {
			c.Before, c.After = present(c.Before), present(c.After)
		}
		c.Target.Object = c.Before
		return output.Evaluated{Change: c}
	case output.Compared:
		r := *e.Result
		for side, c := range r.Changes {
			if c = keptChange(c, cluster); r.Verdict == compare.Same {
				c.Before, c.After = present(c.Before), present(c.After)
			}
			r.Changes[side] = c
		}
		r.Subject, r.Target = r.Changes[compare.Old].Subject, r.Changes[compare.Old].Target
		return output.Compared{Result: &r, Difference: r.Difference()}
	}
	return nil
}

// keptChange returns the parts of a change on a cluster that printers show.
func keptChange(c *engine.Change, cluster string) *engine.Change {
	out := *c
	out.Subject.Cluster, out.Shown = cluster, nil
	out.Target = engine.Target{Key: out.Subject, Object: c.Before, Origin: c.Target.Origin}
	out.Steps = slices.Clone(c.Steps)
	for i := range out.Steps {
		out.Steps[i].After = nil
	}
	return &out
}

// present returns an empty object for any object.
func present(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	return &unstructured.Unstructured{}
}

// Notices collects the messages of the runs on several clusters, to print each once with the names of its
// clusters. The zero value is empty and ready for use.
type Notices struct {
	mu   sync.Mutex
	said said
}

// Of returns a writer of one cluster's messages, each of which has to be written with one call.
func (n *Notices) Of(cluster string) io.Writer { return noticeWriter{n, cluster} }

type noticeWriter struct {
	*Notices
	cluster string
}

// Write implements io.Writer.
func (w noticeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said.add(w.cluster, errors.New(string(p)))
	return len(p), nil
}

// Flush prints the messages in the order of the clusters, each line with the names of its clusters, and
// forgets them.
func (n *Notices) Flush(out io.Writer, order []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	place := func(one *ClustersError) int {
		slices.SortFunc(one.Clusters, func(a, b string) int {
			return slices.Index(order, a) - slices.Index(order, b)
		})
		return slices.Index(order, one.Clusters[0])
	}
	slices.SortStableFunc(n.said.all, func(a, b *ClustersError) int { return place(a) - place(b) })
	for _, one := range n.said.all {
		lines := prefixed{out, redact.EscapeLine(strings.Join(one.Clusters, ", ")) + ": "}
		if _, err := io.WriteString(redact.NewWriter(lines), one.Err.Error()); err != nil {
			return err
		}
	}
	n.said = said{}
	return nil
}

// prefixed writes a prefix before each line of a message.
type prefixed struct {
	out    io.Writer
	prefix string
}

// Write implements io.Writer.
func (w prefixed) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if _, err := fmt.Fprintf(w.out, "%s%s\n", w.prefix, bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
