package human_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

func TestWritesLines(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: "shop", Name: "web"}
	var out bytes.Buffer
	p := outputtest.Printer(human.NewWrites(output.Options{Out: &out, DryRun: "server"}))
	for _, r := range []write.Result{
		{Key: key, Outcome: write.Planned, Method: request.Apply},
		{Key: key, Outcome: write.Planned, Method: request.JSONPatch},
		{Key: key, Outcome: write.Deleted},
		{Key: key, Outcome: write.Failed, Err: errors.New("no\x1b[2J")},
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

// Objects that are not written for one reason are one sentence and one row, unless there are few of them or
// all are asked for. They are printed when the run has verified all, and at its end. What was written has its
// line alone, unless all are asked for.
func TestWritesAlike(t *testing.T) {
	result := func(name, why string) *write.Result {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Pod"}, Version: "v1", Namespace: "shop", Name: name}
		r := &write.Result{Key: key, Outcome: write.Applied, Method: request.Apply, Rules: []engine.RuleRef{{Policy: "p", Rule: "r"}}}
		if why != "" {
			r.Outcome, r.Err = write.Failed, &write.ObjectError{Key: key, Err: errors.New(why)}
		}
		if name == "g" {
			r.Err = &write.ObjectError{Key: key, Err: &write.RejectedError{Text: why, Err: apierrors.NewInternalError(errors.New(`failed calling webhook "w.example.com": x`))}}
		}
		return r
	}
	write := func(all bool) string {
		var out bytes.Buffer
		p := outputtest.Printer(human.NewWrites(output.Options{Out: &out, ListAll: all}))
		var errs []error
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			errs = append(errs, p.Print(output.Written{Result: result(name, `pods "`+name+`" is locked`)}))
		}
		errs = append(errs, p.Print(output.Written{Result: result("f", "no")}), output.Flush(p))
		out.WriteString("written?\n")
		errs = append(errs, p.Print(output.Written{Result: result("g", "late")}), p.Print(output.Written{Result: result("h", "")}), p.Close())
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := `5 objects failed: pods "..." is locked
    Pod shop/a, Pod shop/b, Pod shop/c and 2 more (--list-all lists them)
pod/f failed in namespace shop: no
written?
pod/h serverside-applied in namespace shop
pod/g failed in namespace shop: the server rejects the change: late

8 objects: 1 applied, 7 failed (1: webhook w.example.com cannot be called).
`
	if diff := cmp.Diff(want, write(false)); diff != "" {
		t.Error(diff)
	}
	expanded := write(true)
	for _, want := range []string{"pod/a failed in namespace shop: pods \"a\" is locked\n", "pod/e failed", "Pod    e      shop", "Pod    h      shop        Completed\n"} {
		if !strings.Contains(expanded, want) {
			t.Errorf("no %q in\n%s", want, expanded)
		}
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
	p := outputtest.Printer(human.NewWrites(output.Options{Out: &out}))
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: "shop", Name: "web"}
	err := p.Print(output.Written{Result: &write.Result{
		Key: key, Outcome: write.Conflicted,
		Err:        &write.ObjectError{Key: key, Err: &write.ConflictError{Takeovers: []request.Takeover{scaled, argo}}},
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
