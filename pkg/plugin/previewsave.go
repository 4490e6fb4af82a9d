package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/intent"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
)

// planSaver keeps what a preview finds and saves it as a plan. A nil planSaver
// keeps nothing.
type planSaver struct {
	path    string
	plan    plan.Plan
	entries []*plan.Entry
	client  *cluster.Client
	masker  *secret.Masker

	// How each change would be sent is worked out beside the evaluation, for no
	// more objects at once than there are slots.
	slots chan struct{}
	group sync.WaitGroup
	mu    sync.Mutex
	err   error // the first one
}

// errSaveOffline tells that a plan needs a cluster.
var errSaveOffline = errors.New("--save makes a plan for a cluster, and -f/--filename does without one")

// checkSave settles what --save means for the run: its result is to be applied,
// so that, as in apply-existing, rules for new objects run only if that was typed.
func (f *PreviewFlags) checkSave(c *cobra.Command, request *engine.Request) error {
	switch {
	case f.Save == "":
		return nil
	case f.Objects.Offline():
		return errSaveOffline
	case !c.Flags().Changed("operation"):
		request.Operation = engine.OperationUpdate
	}
	return nil
}

// planSaver begins the plan of a run that is about to be evaluated.
func (w *wiring) planSaver(ctx context.Context, path string, args []string, o *EvaluateOptions) (*planSaver, error) {
	run, err := w.recorded(ctx, args, o)
	if err != nil {
		return nil, err
	}
	return &planSaver{
		path: path, plan: plan.Plan{Run: run}, client: w.client, masker: w.secrets,
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}, nil
}

// recorded says how the run that is about to be evaluated can be repeated.
func (w *wiring) recorded(ctx context.Context, args []string, o *EvaluateOptions) (plan.Run, error) {
	here, err := w.here(ctx)
	if err != nil {
		return plan.Run{}, err
	}
	choice, err := w.choice(args, o)
	if err != nil {
		return plan.Run{}, err
	}
	run := plan.Run{Cluster: here, Version: Version(), Created: o.World.Now, Seed: o.World.Seed, Choice: choice}
	run.Documents, run.Digest, err = plan.DocumentsOf(o.compiled(), isInstalled)
	return run, err
}

// here identifies the cluster. A user who may not read the Namespace kube-system
// has the server's address alone to tell clusters apart.
func (w *wiring) here(ctx context.Context) (plan.Cluster, error) {
	info := w.client.Info()
	out := plan.Cluster{Server: info.Server, Context: info.Context, User: info.User}
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: metav1.NamespaceSystem}
	system, err := apply.Patient{Server: w.client.Once()}.Get(ctx, key)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
	case err != nil:
		return out, fmt.Errorf("asking which cluster this is: %w", err)
	default:
		out.UID = system.GetUID()
	}
	return out, nil
}

// choice is what the user chose, with what follows from the kubeconfig.
func (w *wiring) choice(args []string, o *EvaluateOptions) (plan.Choice, error) {
	scope, err := w.scope(o.World.Mapper, args, o.Request)
	if err != nil {
		return plan.Choice{}, err
	}
	return plan.Choice{
		Types: args, Namespace: scope.Namespace, ClusterScoped: scope.ClusterScoped,
		Selector: w.Objects.Selector, FieldSelector: w.Objects.FieldSelector,
		Operation: o.Request.Operation, User: o.Request.User.Username, Groups: o.Request.User.Groups,
		Only: o.Rules.Only, Skip: o.Rules.Skip, Annotate: w.Annotate, FromCluster: w.Policies.FromCluster,
		AllowHTTP: w.Context.AllowHTTP, AllowRegistry: w.Context.AllowRegistry,
	}, nil
}

// add keeps an object that would change, or of which there is something to tell.
func (s *planSaver) add(ctx context.Context, c *engine.Change) error {
	if s == nil {
		return nil
	}
	e := plan.NewEntry(c)
	if len(e.Fields) == 0 && len(e.Steps) == 0 {
		return nil
	}
	s.entries = append(s.entries, &e)
	if e.Writes() {
		s.slots <- struct{}{}
		s.group.Go(func() {
			_ = s.failed(s.method(ctx, c, &e)) // told by whoever asks next
			<-s.slots
		})
	}
	return s.failed(nil)
}

// failed notes an error, and returns the first one that was noted.
func (s *planSaver) failed(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	return s.err
}

// method sets how a change would be sent.
func (s *planSaver) method(ctx context.Context, c *engine.Change, e *plan.Entry) error {
	request, cannot, err := s.request(ctx, c)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.Subject, err)
	case cannot != nil:
		e.MethodReason = cannot.Error()
	default:
		e.Method, e.MethodReason = request.Method, request.Reason.String()
	}
	return nil
}

// request is the first one that would be sent: the one for the object, or that
// for its status where nothing else changes. Cannot says why there can be none.
func (s *planSaver) request(ctx context.Context, c *engine.Change) (r intent.Request, cannot, err error) {
	gvk := c.Before.GroupVersionKind()
	in := intent.Input{
		Live: c.Before, After: c.After, Subresource: c.Subject.Subresource, Manager: apply.DefaultFieldManager,
	}
	if in.Types, err = s.client.Types(ctx, gvk, false); err != nil {
		return r, nil, err
	}
	hasStatus, err := s.client.HasStatus(ctx, gvk)
	if err != nil {
		return r, nil, err
	}
	if hasStatus && in.Subresource == "" && !fielddiff.Same(c.Before.Object["status"], c.After.Object["status"]) {
		in.After = withStatusOf(c.After, c.Before)
		if r, cannot = intent.Plan(in); cannot != nil || r.Method != intent.None {
			return r, cannot, nil
		}
		in.After, in.Subresource = c.After, "status"
	}
	r, cannot = intent.Plan(in)
	return r, cannot, nil
}

func withStatusOf(object, from *unstructured.Unstructured) *unstructured.Unstructured {
	fields := maps.Clone(object.Object)
	delete(fields, "status")
	if status, ok := from.Object["status"]; ok {
		fields["status"] = status
	}
	return &unstructured.Unstructured{Object: fields}
}

// save writes the plan of a preview that came to its end.
func (s *planSaver) save(summary engine.Summary, e *evaluation) error {
	if s == nil {
		return nil
	}
	if e.broken > 0 {
		return fmt.Errorf("no plan was saved: %s could not be compiled; mend it, or leave it out with --skip", plural(e.broken, "rule or policy"))
	}
	s.group.Wait()
	if err := s.failed(nil); err != nil {
		return fmt.Errorf("no plan was saved: %w", err)
	}
	for _, entry := range s.entries {
		s.plan.Entries = append(s.plan.Entries, *entry)
	}
	s.plan.Summary, s.plan.Incomplete = summary, e.incomplete(summary)
	if err := plan.Save(s.path, &s.plan, s.masker); err != nil {
		return err
	}
	fmt.Fprintf(e.errOut, "Plan saved in %s\n", s.path)
	return nil
}
