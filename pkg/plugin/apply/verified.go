package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Verified is one change that was planned and sent as a dry run. With the outcome
// Planned it can be written (Writer.Write); any other outcome is final.
type Verified struct {
	Result
	// JournalIndex is its place in the journal. A Verified that replaces this one
	// inherits it.
	JournalIndex int

	resourceVersion string
	patch           cluster.Patch
	want            Want
	answered        diff.Partial // Touched, as the dry run answered; zero where that is as wanted
	effect          diff.Partial // all that the dry run changes; zero where that is Touched
	serverValues    []serverValue
	status          *Verified // the part for /status, where there are two
}

// setJournalIndex sets the index of the change and of its part for /status.
func (v *Verified) setJournalIndex(index int) {
	v.JournalIndex = index
	if v.status != nil {
		v.status.JournalIndex = index
	}
}

// ResourceVersion is the version of the object that the request is guarded with.
func (v *Verified) ResourceVersion() string { return v.resourceVersion }

// Answered is what the change touches, with the values of the dry run's answer; those
// that are wanted if there was no dry run.
func (v *Verified) Answered() diff.Partial {
	if v.answered.Fields == nil {
		return v.Touched
	}
	return v.answered
}

// losses are the live fields that should stay and that the server would drop.
func (v *Verified) losses() request.Difference { return v.Difference.Of(request.Lost) }

// keepAnswer keeps of the dry run's answer what the write is compared with.
func (v *Verified) keepAnswer(answer *unstructured.Unstructured) {
	v.answered, v.serverValues = diff.Partial{}, nil
	if len(v.Touched.Drift(answer.Object)) > 0 {
		v.answered = v.Touched.Answered(answer) // kept only where it is needed: there are many objects
	}
	for _, f := range v.Difference {
		value, _ := diff.Lookup(answer.Object, f.Path)
		v.serverValues = append(v.serverValues, serverValue{path: f.Path, value: value})
	}
}

// drift returns the fields in which the answer to the write differs from that to the
// dry run, such as a port that the server picks at random.
func (v *Verified) drift(answer map[string]any) []fieldpath.Path {
	if v.Unverified != nil {
		return nil
	}
	out := v.Answered().Drift(answer)
	for _, b := range v.serverValues {
		if value, _ := diff.Lookup(answer, b.path); !diff.Same(b.value, value) {
			out = append(out, b.path)
		}
	}
	return out
}

// serverValue is a field that the server sets on its own, such as a default.
type serverValue struct {
	path  fieldpath.Path
	value any
}

// touchedBy returns what a planned request touches.
func touchedBy(in request.Input, r request.Request) diff.Partial {
	if r.Method == request.None {
		return diff.Partial{}
	}
	return diff.Between(in.Live, r.Want, diff.NewType(in.Types, in.Live.GroupVersionKind()))
}

// sameFields reports whether two changes touch the same fields.
func sameFields(a, b diff.Partial) bool {
	return slices.EqualFunc(a.Fields, b.Fields, func(x, y engine.FieldChange) bool {
		return x.Kind == y.Kind && x.Path.Equals(y.Path)
	})
}
