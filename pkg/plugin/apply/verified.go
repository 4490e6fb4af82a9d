package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Verified is one change that was planned and rehearsed. The outcome Planned
// means that Writer.Write may be called with it; any other is final.
type Verified struct {
	Result
	// Mark is the caller's own, such as the place in a journal. It is handed on to
	// what takes the place of this one.
	JournalIndex int

	resourceVersion string
	patch           cluster.Patch
	want            Want
	answered        diff.Partial // Touched, as the dry run answered; zero where that is as wanted
	effect          diff.Partial // all that the dry run changes; zero where that is Touched
	beside          []beside
	status          *Verified // the part for /status, where there are two
}

// Status is the part of the change that goes to /status beside the object's own;
// nil where there is none.
func (v *Verified) Status() *Verified { return v.status }

// SetJournalIndex marks the change and its part for /status.
func (v *Verified) SetJournalIndex(mark int) {
	v.JournalIndex = mark
	if v.status != nil {
		v.status.JournalIndex = mark
	}
}

// Patch is the request that would be, or is, sent.
func (v *Verified) Patch() cluster.Patch { return v.patch }

// ResourceVersion is the version of the object that the request is guarded with.
func (v *Verified) ResourceVersion() string { return v.resourceVersion }

// Answered is what the change touches, with what the server answered to the dry
// run; as wanted, where it was not asked.
func (v *Verified) Answered() diff.Partial {
	if v.answered.Fields == nil {
		return v.Touched
	}
	return v.answered
}

// loses lists what is live, should stay, and would be dropped by the server.
func (v *Verified) loses() request.Difference { return v.Difference.Of(request.Lost) }

// Release drops the objects, of which ten thousand would not fit into memory:
// what Write needs stays.
func (v *Verified) Release() {
	v.Before, v.After = nil, nil
	if v.status != nil {
		v.status.Release()
	}
}

// noteAnswer keeps what the dry run answered, as far as the write can be held
// against it.
func (v *Verified) noteAnswer(answer *unstructured.Unstructured) {
	v.answered, v.beside = diff.Partial{}, nil
	if len(v.Touched.Drift(answer.Object)) > 0 {
		v.answered = v.Touched.Answered(answer) // kept only where it is needed: there are many objects
	}
	for _, f := range v.Difference {
		value, _ := diff.Lookup(answer.Object, f.Path)
		v.beside = append(v.beside, beside{path: f.Path, value: value})
	}
}

// drift are the fields in which the answer to the write is other than that to the
// dry run, such as a port that the server picks at random.
func (v *Verified) drift(answer map[string]any) []fieldpath.Path {
	if v.Unverified != nil {
		return nil
	}
	out := v.Answered().Drift(answer)
	for _, b := range v.beside {
		if value, _ := diff.Lookup(answer, b.path); !diff.Same(b.value, value) {
			out = append(out, b.path)
		}
	}
	return out
}

// beside is what the server alone would set, such as a default.
type beside struct {
	path  fieldpath.Path
	value any
}

// touchedBy lists what a planned request touches.
func touchedBy(in request.Input, r request.Request) diff.Partial {
	if r.Method == request.None {
		return diff.Partial{}
	}
	return diff.Between(in.Live, r.Want, typeOf(in.Live, in.Types))
}

// typeOf says how the server reads the object's lists, where it publishes that.
func typeOf(live *unstructured.Unstructured, types managedfields.TypeConverter) diff.Type {
	if types == nil {
		return diff.Type{}
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(live.GroupVersionKind())
	typed, err := types.ObjectToTyped(empty)
	if err != nil {
		return diff.Type{} // of another version than the document
	}
	return diff.Type{Schema: typed.Schema(), Ref: typed.TypeRef()}
}
