package undo

import (
	"context"
	"errors"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// flaky holds a Deployment in which a run owns nothing but the key of a container. It
// answers with errors before it answers.
type flaky struct {
	apply.Server
	reads, writes []error
	read, written int
	secret        bool // a Secret was used for the last read
}

func (f *flaky) Get(ctx context.Context, _ engine.ObjectKey) (*unstructured.Unstructured, error) {
	f.read++
	f.secret = engine.UsesSecret(ctx)
	u := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(`{apiVersion: apps/v1, kind: Deployment,
  metadata: {name: web, namespace: shop, uid: u, resourceVersion: "7", managedFields: [{manager: run, operation: Apply, apiVersion: apps/v1,
    fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}}}}}}}}]},
  spec: {template: {spec: {containers: [{name: app, image: a}]}}}}`), &u.Object)
	return u, errors.Join(err, pop(&f.reads))
}

func (f *flaky) Patch(context.Context, engine.ObjectKey, cluster.Patch) (*unstructured.Unstructured, error) {
	f.written++
	return nil, pop(&f.writes)
}

func pop(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

// What the Server has repeated for long enough is not repeated here: an undo would wait
// for a server that is gone once more for each object.
func TestReleaseBeginsAgainOnlyAfterItsOwnWrite(t *testing.T) {
	gone := apierrors.NewServiceUnavailable("gone")
	busy := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", nil)
	for name, c := range map[string]struct {
		reads, writes []error
		read, written int
		want          error
	}{
		"an answer":                {nil, nil, 1, 1, nil},
		"an answer that is lost":   {nil, []error{gone}, 2, 2, nil},
		"another client":           {nil, []error{busy, busy}, 3, 3, nil},
		"a refusal":                {nil, []error{apierrors.NewBadRequest("no")}, 1, 1, apierrors.NewBadRequest("no")},
		"a read without an answer": {[]error{gone}, nil, 1, 0, gone},
		"no end":                   {nil, []error{gone, gone, gone, gone}, 3, 3, gone},
	} {
		t.Run(name, func(t *testing.T) {
			s := &flaky{reads: c.reads, writes: c.writes}
			r := Reversal{
				Header:   journal.Header{FieldManager: "run"},
				Executor: &apply.Executor{Writer: &apply.Writer{Server: s, Retry: wait.Backoff{Steps: 3}}, ErrOut: io.Discard},
			}
			err := r.releaseOne(t.Context(), engine.ObjectKey{Namespace: "shop", Name: "web"})
			if s.read != c.read || s.written != c.written || (err == nil) != (c.want == nil) {
				t.Errorf("%d reads, %d writes, %v", s.read, s.written, err)
			}
		})
	}
}

// Only elements of lists have keys: what a run did elsewhere need not be looked at again.
func TestReleaseReadsOnlyWhatWasInLists(t *testing.T) {
	write := func(path fieldpath.Path, before, after map[string]any) []Write {
		return []Write{{Partial: diff.Partial{Before: before, After: after, Fields: []engine.FieldChange{{Path: path, Kind: engine.Replaced}}}}}
	}
	label := fieldpath.MakePathOrDie("metadata", "labels", "team")
	containers := fieldpath.MakePathOrDie("spec", "containers")
	element := fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "app"), "image")
	list := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "a"}}}}
	withheld := write(label, nil, nil)
	withheld[0].Fields[0].Withheld = true
	for name, c := range map[string]struct {
		object Object
		read   int
	}{
		"a label":                {Object{Applied: true, Writes: write(label, nil, map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "web"}}})}, 0},
		"an element":             {Object{Applied: true, Writes: write(element, list, list)}, 1},
		"a list":                 {Object{Applied: true, Writes: write(containers, nil, list)}, 1},
		"a list that was":        {Object{Applied: true, Writes: write(containers, list, nil)}, 1},
		"what is not recorded":   {Object{Applied: true, Writes: withheld}, 1},
		"what was not applied":   {Object{Writes: write(element, list, list)}, 0},
		"one of several writes":  {Object{Applied: true, Writes: append(write(label, nil, nil), write(element, list, list)...)}, 1},
		"nothing that was added": {Object{Applied: true, Writes: write(label, nil, nil)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := &flaky{}
			r := Reversal{
				Header: journal.Header{FieldManager: "run"}, Objects: []Object{c.object},
				Executor: &apply.Executor{Options: apply.Options{Concurrency: 1}, Writer: &apply.Writer{Server: server}, ErrOut: io.Discard},
			}
			if err := r.release(t.Context()); err != nil || server.read != c.read {
				t.Errorf("%d reads, want %d; %v", server.read, c.read, err)
			}
			if server.read > 0 && server.secret != c.object.Writes[0].Fields[0].Withheld {
				t.Errorf("the log is told that a Secret is used: %t", server.secret)
			}
		})
	}
}
