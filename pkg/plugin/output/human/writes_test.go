package human_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
)

func TestWritesLines(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: "shop", Name: "web"}
	var out bytes.Buffer
	p := human.NewWrites(output.Options{Out: &out, DryRun: "server"})
	for _, r := range []apply.Result{
		{Key: key, Outcome: apply.Planned, Method: request.Apply},
		{Key: key, Outcome: apply.Planned, Method: request.JSONPatch},
		{Key: key, Outcome: apply.Deleted},
		{Key: key, Outcome: apply.Failed, Err: errors.New("no\x1b[2J")},
	} {
		if err := p.Print(output.Written{Result: &r}); err != nil {
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

func TestWritesConflicts(t *testing.T) {
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	scaled := request.Takeover{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale",
		Fields: fieldpath.NewSet(replicas),
	}
	argo := request.Takeover{
		Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply,
		Fields: fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "paused")),
	}
	var out bytes.Buffer
	p := human.NewWrites(output.Options{Out: &out})
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: "shop", Name: "web"}
	err := p.Print(output.Written{Result: &apply.Result{
		Key: key, Outcome: apply.Conflicted,
		Err:        &apply.ObjectError{Key: key, Err: &apply.ConflictError{Takeovers: []request.Takeover{scaled, argo}}},
		Autoscaled: []engine.Impact{{Owner: "HorizontalPodAutoscaler web", Fields: []fieldpath.Path{replicas}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	want := `Fields that other managers own:
    kube-controller-manager (Update of scale) owns spec.replicas of 1 object; to take them over, add --take-from=kube-controller-manager
        HorizontalPodAutoscaler web will still set them back
    argocd (Apply) owns spec.paused of 1 object; to take them over, add --take-from=argocd
`
	if !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwant in it\n%s", &out, want)
	}
}
