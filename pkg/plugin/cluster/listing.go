package cluster

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// maxRestarts is how often a listing begins again after its snapshot expired on the server.
const maxRestarts = 3

// sparse is which part of the objects that were asked for first a later page has at least.
const sparse = 10

// listing is how far a listing has come, and how to go on.
type listing struct {
	chunk    int64 // objects of a page at most; not positive for all that follow
	fitting  int64 // as many as make a page of about goodPage bytes
	next     string
	begun    bool
	expired  bool // the last answer said so
	restarts int
}

// take goes on to the next page.
func (l *listing) take(p rawList) {
	l.fitting = int64(len(p.items)) * goodPage / int64(max(p.bytes, 1))
	l.next, l.begun, l.expired = p.next, true, false
}

// goodPage is how many bytes a page may have before the next one is asked for with fewer objects: up to three are in memory at
// once, beside what is made of them.
const goodPage = 1 << 20

// limit is how many objects the next page has at most; not positive for all that follow.
func (l *listing) limit() int64 {
	if !l.begun {
		return l.chunk
	}
	asked := int64(defaultChunkSize)
	if l.chunk > 0 {
		asked = min(l.chunk, asked)
	}
	return min(l.chunk, max(l.fitting, asked/sparse, 1))
}

// expire reports whether a listing goes on where an error says that the snapshot that the pages are cut from has
// expired on the server: with the token that it offers, or else from the beginning. It goes on in pages, unlike
// client-go's pager: who lists skips what came before, and a large listing in one piece takes too much memory.
func (l *listing) expire(err error) bool {
	if !apierrors.IsResourceExpired(err) || l.next == "" {
		return false
	}
	token := continueOf(err)
	if token == "" || l.expired { // none, or one that does not help either
		token = ""
		if l.restarts++; l.restarts > maxRestarts {
			return false
		}
	}
	l.next, l.expired = token, true
	return true
}

// shrink makes the next pages smaller if the last one was too large to be read.
func (l *listing) shrink(err error) bool {
	var size *transport.SizeError
	if !errors.As(err, &size) || l.chunk <= 1 {
		return false
	}
	l.chunk = max(1, l.chunk/10)
	return true
}

// uids are those of the objects that came before. Some come again: those that two kinds share, and those of a listing
// that began anew.
type uids map[string]bool

// again reports whether an object came before, and notes that it has come.
func (u uids) again(uid string) bool {
	known := u[uid]
	if uid != "" {
		u[uid] = true
	}
	return known
}
