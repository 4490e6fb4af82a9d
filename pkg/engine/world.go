package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// World is all that an evaluation may ask. A nil capability makes a rule that
// needs it unsupported, and the step names the flag that grants it.
type World struct {
	Reader Reader
	Raw    RawReader
	// Existing reads the objects that a run may change, where policies may read others too; nil stands for
	// Reader.
	Existing Reader
	Access   Authorizer
	Remote   Fetcher
	// Registry knows the images that containers run.
	Registry ImageRegistry
	Mapper   meta.RESTMapper
	// Origin returns where an object was read, as in Document; nil if all are of a cluster.
	Origin func(ObjectKey) string
	// Filtered reports whether Kyverno's resourceFilters keep its policies from an object; nil
	// if there are none.
	Filtered func(ObjectKey) bool
	// Now and Seed stand still during a run, so that preview and apply agree on
	// clocks and random values.
	Now    time.Time
	Seed   uint64
	Limits Limits
	// Memo keeps, for the whole run, what was read for one object and serves
	// others too: each object that a Get names is then read once. Nil keeps nothing.
	Memo *Memo
	// Lack is notified of what the evaluation needs and there is not, so that it went on as
	// if that were empty; by several goroutines, and more than once. Nil where it does not matter.
	Lack func(*UnreadableError)
	// Noted is called for each object that a rule reads, or depends on without a request, such as the Namespace
	// of its object, and without a name for each list; of a path, the Kind is the resource. It may be nil.
	Noted func(context.Context, ObjectKey)
}

// ReadsExisting returns the Reader of the objects that a run may change.
func (w *World) ReadsExisting() Reader { return cmp.Or(w.Existing, w.Reader) }

// RawReader reads policy-chosen paths of the user's own API server. Where a live
// server would know the answer and the RawReader cannot, its error is an
// *UnansweredError.
type RawReader interface {
	Raw(ctx context.Context, method, path string, body []byte) ([]byte, error)
}

// Limits bounds what one evaluation may cost. Policies and cluster contents are
// untrusted; an error that a limit causes names it.
type Limits struct {
	Depth       int // nesting of objects, patches and expressions
	Elements    int // elements of one list that a rule iterates over
	ContextSize int // bytes of data that a rule loads beside the object
	Rounds      int // of any fixed point
}

// DefaultLimits are wide enough for every policy that a server would admit.
func DefaultLimits() Limits {
	return Limits{Depth: 128, Elements: 10_000, ContextSize: 2 << 20, Rounds: 100}
}

// Authorizer decides what a user may do, as the API server would. An error means
// that there is no decision, and says why.
type Authorizer interface {
	Authorize(context.Context, AccessRequest) (AccessDecision, error)
}

// AccessRequest is one question to an Authorizer: about Path if that is set, else
// about a resource, of which an empty part stands for all.
type AccessRequest struct {
	// User is the one who asks: the simulated user, or a service account that a
	// policy names; empty for the user whose credentials the run has.
	User UserInfo
	Verb string
	// Path is that of a request that is for no resource, such as "/healthz".
	Path                                          string
	Group, Resource, Subresource, Namespace, Name string
	// FieldSelector and LabelSelector narrow a list to a part, in kubectl's syntax.
	FieldSelector, LabelSelector string
}

// AccessDecision is an Authorizer's answer. Reason is the server's, if it gave one,
// and Error what went wrong while it decided: policies may read both.
type AccessDecision struct {
	Allowed bool
	Reason  string
	Error   string
}

// SeedOf returns the seed of a rule's random values on some objects. It depends only
// on the run's seed and the names involved, so that the order of objects does not
// matter.
func (w *World) SeedOf(r RuleRef, objects ...ObjectKey) uint64 {
	text := binary.BigEndian.AppendUint64(make([]byte, 0, 256), w.Seed)
	for _, key := range objects {
		for _, name := range []string{r.Policy, r.Rule, key.Group, key.Kind, key.Namespace, key.Name} {
			text = append(append(text, name...), 0)
		}
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // a hash takes everything
	return h.Sum64()
}
