package human

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// running counts the changes to Pods and Jobs, most of whose fields cannot change once they are there.
type running struct {
	changed, refused int
	workloads        map[string]bool // from whose templates they come
	cronJobs         bool            // among the workloads
	rules            map[string]bool // that write what is refused
}

// add counts an object.
func (r *running) add(c *engine.Change) {
	switch c.Subject.GroupKind {
	case schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "batch", Kind: "Job"}:
	default:
		return
	}
	if !c.Changed() {
		return
	}
	r.changed++
	if !c.Refused() {
		return
	}
	if r.refused++; r.rules == nil {
		r.rules, r.workloads = map[string]bool{}, map[string]bool{}
	}
	if kind, name, ok := strings.Cut(impact.Workload(c.Before), " "); ok && kind != "Job" {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: kind}, Namespace: c.Subject.Namespace, Name: name, Cluster: c.Subject.Cluster}
		r.cronJobs = r.cronJobs || kind == "CronJob"
		r.workloads[key.String()] = true
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if slices.ContainsFunc(c.Impacts, func(m engine.Impact) bool { return m.Code.Refuses() && m.Concerns(f.Path) }) {
			r.rules[f.Rule.String()] = true
		}
	}
}

// sentence says that none of these changes can be made, and where they can; "" if one can. In an overview it says
// how many cannot. Of a single object it is said above.
func (r *running) sentence(s evaluation.Summary, overview bool) string {
	var text string
	switch {
	case r.refused < 2:
		return ""
	case r.refused == r.changed:
		text = fmt.Sprintf("No change to a Pod or Job can be made (%s): the server refuses it once the object is there.", wording.Plural(r.refused, "object"))
	case !overview:
		return ""
	default:
		text = fmt.Sprintf("%d of %d changes to Pods and Jobs would be refused: %s would change what is fixed once the object is there.", r.refused, r.changed, engine.Few(slices.Sorted(maps.Keys(r.rules))))
	}
	derived, workloads := engine.Few(r.derived(s)), engine.Few(slices.Sorted(maps.Keys(r.workloads)))
	if workloads = cmp.Or(workloads, "workloads"); derived != "" {
		return text + " The templates of " + workloads + " take it: see " + derived + "."
	}
	if len(r.workloads) > 0 {
		return text + " The templates of " + workloads + " would take it."
	}
	return text
}

// derived are the rules that autogen has derived of these for the workloads.
func (r *running) derived(s evaluation.Summary) []string {
	var out []string
	for i := range s.Rules {
		ref := s.Rules[i].Rule
		written, isDerived := strings.CutPrefix(ref.Rule, "autogen-")
		if !isDerived {
			continue
		}
		written, ofCronJobs := strings.CutPrefix(written, "cronjob-")
		if ofCronJobs && !r.cronJobs {
			continue
		}
		of := ref
		of.Rule = written
		if r.rules[of.String()] {
			out = append(out, ref.String())
		}
	}
	return out
}
