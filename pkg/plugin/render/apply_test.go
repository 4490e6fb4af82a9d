package render_test

import (
	"bytes"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/intent"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

func TestResultsReadLikeKubectlApply(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: "shop", Name: "web"}
	var out bytes.Buffer
	p, err := render.NewResults(render.Summary, render.Options{Out: &out, DryRun: "server"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []apply.Result{
		{Key: key, Outcome: apply.Planned, Method: intent.Apply},
		{Key: key, Outcome: apply.Planned, Method: intent.JSONPatch},
		{Key: key, Outcome: apply.Deleted},
		{Key: key, Outcome: apply.Failed, Err: errors.New("no\x1b[2J")},
	} {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	want := `deployment.apps/web serverside-applied in namespace shop (server dry run)
deployment.apps/web patched in namespace shop (server dry run)
deployment.apps/web skipped (deleted meanwhile) in namespace shop (server dry run)
deployment.apps/web failed in namespace shop: no\x1b[2J (server dry run)

4 objects: 2 planned, 1 deleted, 1 failed (server dry run).
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
