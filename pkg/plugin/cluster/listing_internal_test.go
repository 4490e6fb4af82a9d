package cluster

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestListingOfManyObjects takes pages of a large cluster, and of one that does not end.
func TestListingOfManyObjects(t *testing.T) {
	for _, chunk := range []int{100, 500} {
		l := newListing(schema.GroupResource{Resource: "pods"}, int64(chunk))
		items, listed := make([]RawItem, chunk), 0
		for {
			items[0].Name = fmt.Sprint(listed)
			listed += chunk
			if err := l.take(RawList{Items: items, Continue: fmt.Sprint(listed)}); err != nil {
				t.Logf("after %d objects: %v", listed, err)
				break
			}
		}
		if want := maxListed; listed < 1_000_000 || listed > want+chunk {
			t.Errorf("%d objects in pages of %d, want at most %d", listed, chunk, want)
		}
	}
}
