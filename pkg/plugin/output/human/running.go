package human

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// running counts the changes to Pods and Jobs, most of whose fields cannot change once they are there.
type running struct {
	changed, refused int
	workloads        []string // from whose templates they come, each once
	cronJobs, more   bool     // among the workloads; there are more than are kept
	rules            []string // that write what is refused, each once
}

// maxWorkloads bounds the workloads that are kept, of which the first are named and the others counted.
const maxWorkloads = 1000

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
	r.refused++
	if kind, name, ok := strings.Cut(impact.Workload(c.Before), " "); ok && kind != "Job" {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: kind}, Namespace: c.Subject.Namespace, Name: name, Cluster: c.Subject.Cluster}
		r.cronJobs = r.cronJobs || kind == "CronJob"
		if r.workloads = appendNew(r.workloads, key.String()); len(r.workloads) > maxWorkloads {
			r.workloads, r.more = r.workloads[:maxWorkloads], true
		}
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if slices.ContainsFunc(c.Impacts, func(m engine.Impact) bool { return m.Code.Refuses() && concerns(&m, f.Path) }) {
			r.rules = appendNew(r.rules, f.Rule.String())
		}
	}
}

// concerns reports whether an impact is about a field.
func concerns(m *engine.Impact, field fieldpath.Path) bool {
	return len(m.Fields) == 0 || slices.ContainsFunc(m.Fields, func(path fieldpath.Path) bool { return overlap(path, field) })
}

func appendNew(list []string, text string) []string {
	if i, found := slices.BinarySearch(list, text); !found {
		return slices.Insert(list, i, text)
	}
	return list
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
		text = fmt.Sprintf("%d of %d changes to Pods and Jobs would be refused: %s would change what is fixed once the object is there.", r.refused, r.changed, engine.Few(r.rules))
	}
	derived, workloads := engine.Few(r.derived(s)), engine.Few(r.workloads)
	if r.more {
		const named = 3
		workloads = fmt.Sprintf("%s and more than %d others", strings.Join(r.workloads[:named], ", "), maxWorkloads-named)
	}
	switch {
	case len(r.workloads) > 0 && derived != "":
		return text + " The templates of " + workloads + " take it: see " + derived + "."
	case len(r.workloads) > 0:
		return text + " The templates of " + workloads + " would take it."
	case derived != "":
		return text + " The templates of workloads take it: see " + derived + "."
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
		if _, found := slices.BinarySearch(r.rules, of.String()); found {
			out = append(out, ref.String())
		}
	}
	return out
}
