package legacy

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// ExplainOverlay tells why an overlay that ApplyOverlay has applied changed
// nothing: what held back each part that the object does not hold.
func ExplainOverlay(live, patch map[string]any, why *engine.Reasons) {
	(&explainer{writer: &writer{}, why: why}).fields(live, patch, "")
}

type explainer struct {
	*writer // which judges conditions, within its bounds
	why     *engine.Reasons
}

func (x *explainer) fields(live, patch map[string]any, at string) {
	for _, key := range sortedKeys(patch) {
		anchor, plain := pattern.ParseKey(key)
		value, present := live[plain]
		path := join(at, plain)
		switch {
		case anchor == pattern.Condition && !writes(patch[key]):
		case anchor == pattern.Add && present:
			if !diff.Equal(value, patch[key], diff.Type{}) {
				x.why.Add("%s is there already (%s): +() only adds", path, x.why.Value(value))
			}
		case patch[key] == nil && present:
			x.why.Add("%s stays: an overlay does not delete", path)
		default:
			x.value(value, patch[key], path)
		}
	}
}

func (x *explainer) value(live, patch any, at string) {
	list, isList := live.([]any)
	switch p := patch.(type) {
	case map[string]any:
		if isList {
			x.element(list, entry(p), at)
			return
		}
		object, _ := live.(map[string]any)
		x.fields(object, p, at)
	case []any:
		for _, element := range p {
			x.element(list, element, at)
		}
	}
}

// element is about an element of the overlay's list.
func (x *explainer) element(live []any, element any, at string) {
	hits, isNew, err := x.targets(live, element, at)
	if err != nil || isNew || element == nil {
		return
	}
	for _, i := range hits {
		object, _ := live[i].(map[string]any)
		x.fields(object, mapOf(element), fmt.Sprintf("%s[%d]", at, i))
	}
	if len(hits) == 0 {
		x.why.Add("no element of %s meets what the overlay asks of one", at)
	}
}

// Explain tells why patches that Apply has applied to the object changed nothing.
func (p Patches) Explain(object map[string]any, why *engine.Reasons) {
	for _, o := range p.operations {
		next, err := o.apply(object)
		switch {
		case err != nil: // of a remove, which then does not count
			why.Add("%v", err)
		case diff.Same(next, object):
			o.patch.Explain(object, why)
		default:
			object = next
		}
	}
}
