package evaluation

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// reads notes objects that rules read besides the objects of the run, and objects that the run changes, of
// which such a rule saw the state before.
type reads struct {
	mu   sync.Mutex
	read map[engine.ObjectKey]bool // as World.Noted has it

	seed    maphash.Seed
	changed map[uint64]bool           // hashes of keys: there may be many, and a note is all that depends on it
	kinds   map[engine.ObjectKey]bool // of these, in their namespaces
}

// observe returns a world that notes the reads in its views.
func (r *reads) observe(w *engine.World) *engine.World {
	r.read, r.changed, r.kinds = map[engine.ObjectKey]bool{}, map[uint64]bool{}, map[engine.ObjectKey]bool{}
	r.seed = maphash.MakeSeed()
	out := *w
	out.Noted = r.noteRead
	return &out
}

func (r *reads) noteRead(key engine.ObjectKey) {
	key = key.Named()
	key.Subresource = ""
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[key] = true
}

// noteChange notes an object that the run changes. It is called by one goroutine.
func (r *reads) noteChange(key engine.ObjectKey) {
	key.Subresource = ""
	r.changed[maphash.Comparable(r.seed, key.Named())] = true
	r.kinds[engine.ObjectKey{GroupKind: key.GroupKind, Namespace: key.Namespace}] = true
}

// outdated lists, in order, objects that rules read and the run changes, and kinds of which they listed some.
func (r *reads) outdated() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for k := range r.kinds {
		guess, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind())
		for key := range r.read {
			if key.Group != k.Group || key.Kind != k.Kind && key.Kind != guess.Resource {
				continue
			}
			key.Kind = k.Kind
			switch {
			case key.Name != "" && r.changed[maphash.Comparable(r.seed, key.Named())]:
				out = append(out, key.String())
			case key.Name == "" && cmp.Or(key.Namespace, k.Namespace) == k.Namespace:
				out = append(out,
					"the list of "+engine.Selection{Group: k.Group, Kind: k.Kind, Namespace: key.Namespace}.String())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
