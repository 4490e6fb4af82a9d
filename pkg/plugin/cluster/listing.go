package cluster

import (
	"errors"
	"fmt"
	"hash/maphash"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// The bounds of one listing, several times what the largest clusters hold.
const (
	maxListed   = 2_000_000 // objects
	maxPages    = 20_000
	maxEmpty    = 100      // pages without an object
	maxSparse   = 1_000    // pages with far fewer objects than were asked for
	maxRestarts = 3        // after its snapshot expired on the server
	maxToken    = 64 << 10 // bytes of a continue token, which is sent back in a URL
)

// sparse is which part of the objects that were asked for makes a page a sparse one. An API
// server fills its pages but for the last one; one that stands for others may end a page where
// one of them ends.
const sparse = 10

// ListingError reports a listing that does not end by itself.
type ListingError struct {
	Resource schema.GroupResource
	Reason   string
}

// Error names the resource and what the server does.
func (e *ListingError) Error() string {
	return fmt.Sprintf("the listing of %s does not end: %s", e.Resource, e.Reason)
}

// listing is how far a listing has come, and how to go on.
type listing struct {
	resource schema.GroupResource
	chunk    int64 // objects of a page at most; not positive for all that follow
	fitting  int64 // as many as make a page of about goodPage bytes
	asked    int64 // objects of the first page; at most the default, beyond which servers may have a limit of their own
	next     string
	expired  bool // the last answer said so

	objects, pages, empty, sparse, restarts int

	seed maphash.Seed
	seen map[uint64]bool // tokens, and first objects of pages: one that comes again is a circle
}

func newListing(resource schema.GroupResource, chunk int64) *listing {
	asked := int64(defaultChunkSize)
	if chunk > 0 {
		asked = min(chunk, asked)
	}
	return &listing{resource: resource, chunk: chunk, asked: asked, seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
}

// again reports whether a text of one sort has come before.
func (l *listing) again(sort, text string) bool {
	h := maphash.String(l.seed, sort+text)
	defer func() { l.seen[h] = true }()
	return l.seen[h]
}

// take counts a page and goes on to the next one.
func (l *listing) take(p RawList) error {
	l.expired = false
	l.objects += len(p.Items)
	if len(p.Items) == 0 {
		l.empty++
	}
	if int64(len(p.Items)) < l.asked/sparse {
		l.sparse++
	}
	l.fit(p)
	l.next = p.Continue
	if l.next == "" {
		return nil
	}
	reason := ""
	switch {
	case len(l.next) > maxToken:
		reason = fmt.Sprintf("the server sent a continue token of %d bytes", len(l.next))
	case l.again("token ", l.next):
		reason = "the server sent the same continue token twice"
	case len(p.Items) > 0 && l.again("object ", p.Items[0].id()):
		reason = "the server sent the same page twice"
	case l.empty > maxEmpty:
		reason = fmt.Sprintf("the server sent more than %d pages without an object", maxEmpty)
	case l.sparse > maxSparse:
		reason = fmt.Sprintf("the server sent more than %d pages with fewer than %d objects, where %d were asked for", maxSparse, l.asked/sparse, l.asked)
	case l.objects > maxListed:
		reason = fmt.Sprintf("the server sent more than %d objects; list fewer, with -n or -l", maxListed)
	default:
		return l.page()
	}
	return &ListingError{l.resource, reason}
}

// goodPage is how many bytes a page may have before the next one is asked for with fewer objects: up to three are in memory at
// once, beside what is made of them.
const goodPage = 1 << 20

// fit chooses how many objects the next page has.
func (l *listing) fit(p RawList) {
	size := 0
	for _, item := range p.Items {
		size += len(item.text)
	}
	l.fitting = int64(len(p.Items)) * goodPage / int64(max(size, 1))
}

// limit is how many objects the next page has at most; not positive for all that follow. However large they are, it is not a sparse one.
func (l *listing) limit() int64 {
	if l.pages == 0 {
		return l.chunk
	}
	return min(l.chunk, max(l.fitting, l.asked/sparse, 1))
}

// page counts a request.
func (l *listing) page() error {
	if l.pages++; l.pages > maxPages {
		return &ListingError{l.resource, fmt.Sprintf("it has more than %d pages; a larger --chunk-size makes fewer", maxPages)}
	}
	return nil
}

// expire goes on where the snapshot that the pages are cut from has expired on the server: with
// the token that it offers, or else from the beginning. It goes on in pages, unlike client-go's pager: who
// lists skips what came before, and a large listing in one piece takes too much memory.
func (l *listing) expire(token string) error {
	if token == "" || l.expired { // none, or one that does not help either
		token = ""
		clear(l.seen)
		if l.restarts++; l.restarts > maxRestarts {
			return &ListingError{l.resource, "its pages expire before they are read"}
		}
	}
	l.next, l.expired = token, true
	return l.page()
}

// shrink makes the next pages smaller if the last one was too large to be read.
func (l *listing) shrink(err error) bool {
	var size *transport.SizeError
	if !errors.As(err, &size) || l.chunk <= 1 {
		return false
	}
	l.chunk = max(1, l.chunk/10)
	return l.page() == nil
}

// uids are those of the objects that came before. Some come again: those that two kinds share, and those of a listing
// that began anew.
type uids struct{ *engine.Digests[string] }

func newUIDs() uids { return uids{engine.NewDigests[string]()} }

// again reports whether an object came before, and notes that it has come.
func (u uids) again(uid string) bool { return uid != "" && !u.Add(uid) }

// id is what identifies an object within its resource.
func (i RawItem) id() string { return i.Namespace + "/" + i.Name + "/" + i.UID }
