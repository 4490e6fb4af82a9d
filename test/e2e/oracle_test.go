package e2e

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/rand"
)

// TestOracle asks a real API server what MutatingAdmissionPolicies do, and holds
// kubectl-mutate against its answers, field by field.
//
// Each case has namespaces of its own, and its policies are confined to them.
// While no policy is installed, kubectl-mutate says what would become of the
// objects, and what it says goes to the server as a dry run: so the server adds
// its defaults to it, or refuses it. Then all policies are installed, and the
// objects as they are go to the server as a dry run. Both answers must be the
// same object, or the same refusal.
//
// The cases are testdata/oracle, each of which records what the server answers
// (-update writes that), and those of test/corpus.
func TestOracle(t *testing.T) {
	o := newOracle(t)
	cases := append(ownOracleCases(t), corpusOracleCases(t)...)
	for i, c := range cases {
		if err := c.place(fmt.Sprintf("oracle-%s-%d", o.id, i)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				// All that -run chooses are known before the first one continues.
				o.chosen = append(o.chosen, c)
				t.Parallel()
				if err := o.prepared(); err != nil {
					t.Fatal(err)
				}
				o.judge(t, c)
			})
		}
	})
	if t.Failed() {
		return // one run over all of them would only say it again
	}
	t.Run("all installed", func(t *testing.T) { o.judgeTogether(t, o.plugin.installed) })
	t.Run("all from manifests", func(t *testing.T) { o.judgeTogether(t, o.plugin.manifests) })
}

// oracle is what the cases share.
type oracle struct {
	id       string
	server   *oracleServer
	plugin   *oraclePlugin
	chosen   []*oracleCase
	prepared func() error // all that comes before the comparison, done once
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	dir := t.TempDir()
	check(t, buildPlugin(dir))
	plugin, err := newOraclePlugin(dir)
	check(t, err)
	o := &oracle{id: rand.String(5), server: newOracleServer(t), plugin: plugin}
	ctx := t.Context()
	o.prepared = sync.OnceValue(func() error { return o.prepare(ctx) })
	return o
}

// prepare predicts while nothing is installed, and then installs everything.
// What goes wrong in one case stays in that case.
func (o *oracle) prepare(ctx context.Context) error {
	o.each(ctx, o.server.create)
	o.each(ctx, o.predict)
	o.each(ctx, o.server.install)
	return o.server.awaitInstalled(ctx, "oracle-"+o.id)
}

func (o *oracle) each(ctx context.Context, do func(context.Context, *oracleCase) error) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	for _, c := range o.chosen {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if c.err == nil {
				c.err = do(ctx, c)
			}
		})
	}
	all.Wait()
}

// predict asks kubectl-mutate, and the server what it makes of the answer.
func (o *oracle) predict(ctx context.Context, c *oracleCase) error {
	var err error
	if c.predicted, err = o.plugin.preview(ctx, c); err != nil {
		return err
	}
	for i, object := range c.live {
		a := c.predicted.answers[i]
		if a.outcome == isChanged {
			a = o.server.ask(ctx, c, object, a.object)
		}
		c.ours = append(c.ours, a)
	}
	return nil
}

// judge asks the server what the installed policies do, and compares.
func (o *oracle) judge(t *testing.T, c *oracleCase) {
	if c.err != nil {
		t.Fatal(c.err)
	}
	var theirs []answer
	for _, object := range c.live {
		theirs = append(theirs, o.server.ask(t.Context(), c, object, object))
	}
	text, ourText := c.describe(c.refusals, theirs), c.describe(c.predicted.refusals, c.ours)
	if c.file != "" {
		c.compareRecord(t, recordSection, text)
	}
	found := c.compare(theirs)
	switch {
	case c.Differs == "":
		for _, difference := range found {
			t.Error(difference)
		}
	case len(found) == 0:
		t.Errorf("the answers are the same, although the case says that they differ: %s", c.Differs)
	default:
		c.compareRecord(t, differsSection, ourText)
	}
	if t.Failed() {
		t.Logf("the server:\n%s\nkubectl-mutate:\n%s\n%s", text, ourText, c.predicted.stderr)
	}
}

// compare lists what the server and kubectl-mutate do not agree on.
func (c *oracleCase) compare(theirs []answer) []string {
	var found []string
	if (len(c.refusals) > 0) != (len(c.predicted.refusals) > 0) {
		found = append(found, "one of the two refuses the policies, and the other does not")
	}
	for i, object := range c.live {
		if d := theirs[i].difference(c.ours[i]); d != "" {
			found = append(found, fmt.Sprintf("%s %s (-server +kubectl-mutate):\n%s", object.GetKind(), object.GetName(), d))
		}
	}
	return found
}

// compareRecord demands that an answer is the one that was given when the case was
// written: a case whose policy does nothing would prove nothing.
func (c *oracleCase) compareRecord(t *testing.T, section, text string) {
	d := cmp.Diff(strings.Split(c.recorded[section], "\n"), strings.Split(text, "\n"))
	switch {
	case d == "":
	case *update:
		check(t, c.record(section, text))
	default:
		t.Errorf("%s is another one than what is recorded (-recorded +now):\n%s", section, d)
	}
}

// judgeTogether demands of one run over all policies and objects what was said
// about each case alone.
func (o *oracle) judgeTogether(t *testing.T, preview func(context.Context, []*oracleCase) (map[string]answer, error)) {
	var cases []*oracleCase
	for _, c := range o.chosen {
		if c.Operation == operationUpdate && c.User == "" && c.Apart == "" && len(c.refusals) == 0 {
			cases = append(cases, c)
		}
	}
	together, err := preview(t.Context(), cases)
	check(t, err)
	for _, c := range cases {
		for i, object := range c.live {
			a, ok := together[titleOf(object)]
			if !ok {
				a = answer{outcome: isUnchanged, object: object}
			}
			if d := c.predicted.answers[i].difference(a); d != "" {
				t.Errorf("%s: %s (-alone +together):\n%s", c.name, titleOf(object), d)
			}
		}
	}
}
