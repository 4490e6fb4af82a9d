package cluster

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// rawList is one page of a listing.
type rawList struct {
	items []*unstructured.Unstructured
	// next is the token of the next page; empty on the last one.
	next string
	// resourceVersion is that of the state of the cluster that the list shows.
	resourceVersion string
	// remaining is how many objects follow, and negative where the server does not
	// say so: it does not know for listings with a selector.
	remaining int64
	bytes     int // of its text
}

// errNoItems reports an answer that would read as a list without objects, and is none.
var errNoItems = errors.New("it has no items")

// readList reads a page of a resource.
func readList(body []byte, r *resource) (rawList, error) {
	var content map[string]any
	err := json.Unmarshal(body, &content)
	items, isList := content["items"]
	if _, is := items.([]any); err == nil && !is && (!isList || items != nil) {
		err = errNoItems
	}
	if err != nil {
		return rawList{}, fmt.Errorf("%s: the answer is no list: %w", r.mapping.Resource.GroupResource(), err)
	}
	var list unstructured.UnstructuredList
	list.SetUnstructuredContent(content)
	out := rawList{next: list.GetContinue(), resourceVersion: list.GetResourceVersion(), remaining: -1, bytes: len(body)}
	if remaining := list.GetRemainingItemCount(); remaining != nil {
		out.remaining = *remaining
	}
	if out.next == "" {
		out.remaining = 0
	}
	for i := range list.Items {
		out.items = append(out.items, r.typed(&list.Items[i]))
	}
	return out, nil
}

// typed gives an object of a list the type of the resource, unless it has one.
func (r *resource) typed(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		u.SetGroupVersionKind(r.mapping.GroupVersionKind)
	}
	return u
}

// readObject reads a single object.
func readObject(body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return nil, fmt.Errorf("the answer is no object: %w", err)
	}
	return u, nil
}
