package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// rule is a rule of the old policy in the terms of the new ones.
type rule struct {
	name    string // as it is written
	index   int    // in spec.rules
	derived bool
	selection
	guards []string // conditions that the whole rule depends on, beside those of the selection
	// forms are the ways to write what it does, the simplest first.
	forms [][]mutation
}

// converter converts the rules of one policy.
type converter struct {
	Options
	document engine.Document
	ctx      context.Context
}

// rule converts one rule. The error is a *Refusal.
func (c *converter) rule(w kyverno.WrittenRule) (*rule, error) {
	report := &policydecode.Report{Warn: func(engine.CompileError) {}}
	f := policydecode.Node{Report: report, Path: fmt.Sprintf("spec.rules[%d]", w.Index), Value: w.Fields}.Fields()
	r := &rule{name: f.At("name").Text(), index: w.Index, derived: w.Derived}
	in := match.Decode(f.At("match"))
	var out *match.Block
	if f.Has("exclude") {
		out = match.Decode(f.At("exclude"))
	}
	if err := report.Err(); err != nil {
		return nil, &Refusal{Reason: err.Error(), Instead: "correct it first"}
	}
	m := matcher{mapper: c.Mapper, admission: c.To == MutatingAdmissionPolicy}
	if c.document.Object.GetKind() == "Policy" {
		m.namespace = c.document.Object.GetNamespace()
		if m.namespace == "" {
			m.namespace = "default"
		}
	}
	s, err := m.selection(in, out)
	if err != nil {
		return nil, err
	}
	r.selection = *s
	for _, field := range []string{"context", "preconditions"} {
		if f.Has(field) {
			return nil, refuseField(field, "", "is not converted yet")
		}
	}
	return r, c.mutate(r, f.At("mutate").Fields())
}

// mutate converts what the rule does.
func (c *converter) mutate(r *rule, f *policydecode.Fields) error {
	switch {
	case f.Has("targets"):
		return refuseField("mutate.targets", "", "is not converted yet")
	case f.Has("patchStrategicMerge"):
		patch, ok := f.Values["patchStrategicMerge"].(map[string]any)
		if !ok {
			return refuseField("mutate.patchStrategicMerge", "", "is no mapping")
		}
		return inField("mutate.patchStrategicMerge", c.strategicMerge(r, patch))
	}
	return refuseField("mutate", "", "is not converted yet")
}

// inField puts the place of a refusal below a field.
func inField(field string, err error) error {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	out := *refusal
	if out.Field != "" {
		field += "." + out.Field
	}
	out.Field = field
	return &out
}

// kind is the one whose schema says how to write a patch: all kinds of a rule have to agree.
func (r *rule) kind() schema.GroupVersionKind {
	for _, rule := range r.rules {
		for _, k := range rule.kinds {
			return k
		}
	}
	return schema.GroupVersionKind{}
}

// root is the whole object, as an expression sees it.
func (c *converter) root(r *rule) place {
	return place{root: "object", typ: diff.TypeOf(c.ctx, c.Reader, r.kind())}
}

var workloads = []string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"} //nolint:gochecknoglobals // an immutable table

func (r *rule) scope() *scope {
	workload := len(r.rules) > 0
	for _, rule := range r.rules {
		workload = workload && len(rule.kinds) > 0 && !slices.ContainsFunc(rule.kinds, func(k schema.GroupVersionKind) bool {
			return !slices.Contains(workloads, k.Kind)
		})
	}
	return &scope{workload: workload}
}

// lists says how the lists of the rule's kind merge.
func (c *converter) lists(r *rule) strategicmerge.Lists {
	gvk := r.kind()
	s, err := c.Reader.Schema(c.ctx, gvk)
	if err != nil {
		s = engine.Schema{}
	}
	return strategicmerge.NewLists(gvk.GroupVersion().String(), gvk.Kind, s)
}

func (c *converter) strategicMerge(r *rule, patch map[string]any) error {
	m := merge{scope: r.scope(), lists: c.lists(r), used: map[string]bool{}}
	root := c.root(r)
	edits, err := m.fields(patch, root, &m.guards)
	if err != nil {
		return err
	}
	if len(edits) == 0 {
		return refuseField("", "leave it out", "changes nothing")
	}
	r.guards = append(r.guards, m.guards...)
	r.forms = formsOf(edits, root)
	return nil
}

// formsOf are the ways to make edits.
func formsOf(edits []*edit, root place) [][]mutation {
	var forms [][]mutation
	apply, patch := splitAll(edits)
	if len(apply) > 0 {
		form := []mutation{{apply: true, cel: applyConfiguration(apply, root)}}
		if len(patch) > 0 {
			form = append(form, mutation{cel: jsonPatch(patch)})
		}
		forms = append(forms, form)
	}
	return append(forms, []mutation{{cel: jsonPatch(edits)}})
}

func jsonPatch(edits []*edit) string {
	o := &operations{}
	o.edits(edits)
	return o.String()
}
