package conformance

import (
	"context"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// Cluster is what a case is evaluated in.
type Cluster struct {
	Objects engine.Source // streams the live objects
	World   *engine.World // serves the live and the other objects
}

// Options say what to run and where.
type Options struct {
	// Cases holds the corpus: all its *.txtar files are run. RunDirectory sets it.
	Cases fs.FS
	// NewCluster makes a cluster of the objects that are evaluated and of those
	// that exist beside them. The laws compare these objects with what they were
	// before, so that it must hand on the very objects. The default is NewCluster.
	NewCluster func(live, others []*unstructured.Unstructured, r engine.Request) (Cluster, error)
	// Annotate has dialects annotate the targets of mutate-existing rules.
	Annotate bool
	// Update, where it is set, takes the content of a case whose results are
	// other than they were, instead of failing the test.
	Update func(name string, content []byte) error
}

// Run runs every case that has policies in the dialect's language, each as a
// subtest. It fails the test when there is none at all.
func Run(t *testing.T, d engine.Dialect, o Options) {
	t.Helper()
	cases, err := readCases(o.Cases)
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	for _, c := range cases {
		documents, err := c.policies(d.Name())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(documents) == 0 {
			continue
		}
		ran = true
		t.Run(c.name, func(t *testing.T) {
			for _, err := range check(t.Context(), c, d, documents, o) {
				t.Error(err)
			}
		})
	}
	if !ran {
		t.Errorf("no case has a section policy.%s.yaml", d.Name())
	}
}

// check runs one case and returns what is wrong, laws first.
func check(ctx context.Context, c *testCase, d engine.Dialect, documents []engine.Document, o Options) []error {
	if o.NewCluster == nil {
		o.NewCluster = NewCluster
	}
	r := runner{testCase: c, dialect: d, documents: documents, newCluster: o.NewCluster, annotate: o.Annotate}
	got, err := r.run(ctx, c.live, c.world)
	if err != nil {
		return []error{err}
	}
	problems := got.broken()
	problems = append(problems, r.repeated(ctx, got)...)
	problems = append(problems, r.idempotent(ctx, got)...)
	results, err := c.results(d.Name(), got)
	if err != nil {
		return append(problems, err)
	}
	if o.Update != nil {
		return append(problems, c.update(results, o.Update)...)
	}
	return append(problems, c.compare(results)...)
}

// runner evaluates the policies of one case.
type runner struct {
	*testCase
	dialect    engine.Dialect
	documents  []engine.Document
	newCluster func(live, others []*unstructured.Unstructured, r engine.Request) (Cluster, error)
	annotate   bool
}

// answer is what one evaluation said.
type answer struct {
	changes  []*engine.Change
	refused  error // what did not compile
	modified string
	typeOf   typeOf
}

// run evaluates objects from scratch. Its error means that no answer was given.
func (r *runner) run(ctx context.Context, live, others []*unstructured.Unstructured) (*answer, error) {
	before := copies(r.documents, live, others)
	cluster, err := r.newCluster(live, others, r.request)
	if err != nil {
		return nil, fmt.Errorf("making the cluster: %w", err)
	}
	program, err := r.dialect.Compile(engine.Compilation{
		Documents: r.documents, Limits: engine.DefaultLimits(), Annotate: r.annotate, Warn: func(engine.CompileError) {},
	})
	out := &answer{refused: err, typeOf: schemaOf(ctx, cluster.World)}
	if program == nil {
		return out, nil
	}
	e := evaluation.New([]engine.Program{program}, cluster.World, evaluation.Options{Request: r.request})
	if err := e.Prepare(ctx, cluster.Objects); err != nil {
		return nil, fmt.Errorf("preparing: %w", err)
	}
	err = e.Run(ctx, cluster.Objects, func(c *engine.Change) error {
		out.changes = append(out.changes, c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("evaluating: %w", err)
	}
	out.modified = cmp.Diff(before, copies(r.documents, live, others))
	return out, nil
}

// copies are deep copies of all that an evaluation is given.
func copies(documents []engine.Document, lists ...[]*unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	for _, d := range documents {
		out = append(out, d.Object().DeepCopy().Object)
	}
	for _, list := range lists {
		for _, u := range list {
			out = append(out, u.DeepCopy().Object)
		}
	}
	return out
}

// compare returns how the results differ from the sections of the case.
func (c *testCase) compare(results []result) []error {
	var problems []error
	for _, got := range results {
		want, present := c.section(got.section)
		if got.optional && !present {
			continue
		}
		if diff := got.difference(want); diff != "" {
			problems = append(problems, fmt.Errorf("%s (-want +got):\n%s", got.section, diff))
		}
	}
	return problems
}

// update hands the case with its new results to write.
func (c *testCase) update(results []result, write func(string, []byte) error) []error {
	changed := false
	for _, got := range results {
		want, present := c.section(got.section)
		if got.optional && !present {
			continue
		}
		if got.difference(want) != "" {
			c.setSection(got.section, got.text)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	if err := write(c.name+".txtar", c.format()); err != nil {
		return []error{fmt.Errorf("rewriting the results: %w", err)}
	}
	return nil
}
