package cluster

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestListingOfManyObjects takes pages of a large cluster, and of one that does not end: full
// ones, those of a server with a limit of its own, and those of objects that are asked for one by one.
func TestListingOfManyObjects(t *testing.T) {
	for _, c := range []struct{ asked, sent, want int }{
		{100, 100, maxListed},
		{500, 500, maxListed},
		{500, 50, 50 * maxPages},
		{10_000, 500, maxListed},
		{1, 1, maxPages},
		{500, 49, 49 * maxSparse},
	} {
		l := newListing(schema.GroupResource{Resource: "pods"}, int64(c.asked))
		items, listed := make([]RawItem, c.sent), 0
		for {
			items[0].Name = fmt.Sprint(listed)
			listed += c.sent
			if err := l.take(RawList{Items: items, Continue: fmt.Sprint(listed)}); err != nil {
				t.Logf("after %d objects: %v", listed, err)
				break
			}
		}
		if listed < c.want || listed > c.want+c.sent {
			t.Errorf("%d objects in pages of %d, where %d were asked for: want %d", listed, c.sent, c.asked, c.want)
		}
	}
}
