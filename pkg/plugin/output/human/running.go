package human

import (
	"fmt"
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
	workloads        []string // from whose templates they come, each once
	rules            []string // that change them, each once
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
	r.refused++
	if kind, name, ok := strings.Cut(impact.Workload(c.Before), " "); ok && kind != "Job" {
		r.workloads = appendNew(r.workloads, kind+" "+c.Subject.Namespace+"/"+name)
	}
	for i := range c.Fields {
		r.rules = appendNew(r.rules, c.Fields[i].Rule.String())
	}
}

func appendNew(list []string, text string) []string {
	if i, found := slices.BinarySearch(list, text); !found {
		return slices.Insert(list, i, text)
	}
	return list
}

// sentence says that none of these changes can be made, and where they can; "" if one can. Of a single object it is
// said above.
func (r *running) sentence(s evaluation.Summary) string {
	if r.refused < 2 || r.refused < r.changed {
		return ""
	}
	text := fmt.Sprintf("No change to a Pod or Job can be made (%s): the server refuses it once the object is there.", wording.Plural(r.refused, "object"))
	derived := engine.Few(r.derived(s))
	switch {
	case len(r.workloads) > 0 && derived != "":
		return text + " The templates of " + engine.Few(r.workloads) + " take it: see " + derived + "."
	case len(r.workloads) > 0:
		return text + " The templates of " + engine.Few(r.workloads) + " would take it."
	case derived != "":
		return text + " The templates of workloads take it: see " + derived + "."
	}
	return text
}

// derived are the rules that autogen has derived of these for the workloads.
func (r *running) derived(s evaluation.Summary) []string {
	var out []string
	cronJobs := slices.ContainsFunc(r.workloads, func(name string) bool { return strings.HasPrefix(name, "CronJob ") })
	for i := range s.Rules {
		ref := s.Rules[i].Rule
		written, isDerived := strings.CutPrefix(ref.Rule, "autogen-")
		if !isDerived {
			continue
		}
		written, ofCronJobs := strings.CutPrefix(written, "cronjob-")
		if ofCronJobs && !cronJobs {
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
