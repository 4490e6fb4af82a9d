package cluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func podResource() *resource {
	return &resource{mapping: &meta.RESTMapping{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Scope: meta.RESTScopeNamespace,
	}}
}

// readObjects reads a list and all of its objects.
func readObjects(body string) (list rawList, items []*unstructured.Unstructured, err error) {
	list, err = readList([]byte(body), podResource())
	page := func(yield func(rawList, error) bool) { yield(list, err) }
	for u, err := range podResource().objects(page, func(rawList) {}) {
		if err != nil {
			return list, items, err
		}
		items = append(items, u)
	}
	return list, items, nil
}

func TestReadList(t *testing.T) {
	list, items, err := readObjects(`{"kind":"PodList","apiVersion":"v1",
		"metadata":{"resourceVersion":"7","continue":"next","remainingItemCount":1},
		"items":[
			{"metadata":{"name":"web","namespace":"shop","uid":"u1","resourceVersion":"3","labels":{"a/b":"c\"d"},
				"ownerReferences":[{"name":"x","controller":false},{"controller": true }]},"n":[1,1.5]},
			{"apiVersion":"v1","kind":"Pod","metadata":{"name":"db"}}
		]}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range items {
		if u.GetKind() != "Pod" || u.GetAPIVersion() != "v1" {
			t.Errorf("%s is a %s %s", u.GetName(), u.GetAPIVersion(), u.GetKind())
		}
		got = append(got, fmt.Sprintf("%s/%s %s@%s %v", u.GetNamespace(), u.GetName(), u.GetUID(), u.GetResourceVersion(), u.GetLabels()))
	}
	want := []string{`shop/web u1@3 map[a/b:c"d]`, "/db @ map[]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if list.next != "next" || list.remaining != 1 || len(list.items) != 2 || list.resourceVersion != "7" {
		t.Errorf("%+v", list)
	}
	if diff := cmp.Diff([]any{int64(1), 1.5}, items[0].Object["n"]); diff != "" {
		t.Error(diff)
	}
}

func TestReadListRefusesWhatIsNone(t *testing.T) {
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"items":{}}`, `{"kind":"Status"}`, `{"items":[{}`, `<html>`,
		`{"items":[{},]}`, `{"items":[{}}`, `{"items":[{]]}`, `{"items":[{} {}]}`, `{"items":[{"a":"}]`, `{"items":[{"a":"\\`,
		`{"items":[{},1]}`, `{"items":[{}]}}`, `{"items":[{"a":1,}]}`, `{"items":[{},{"kind":"Secret"}]}`,
	} {
		if _, _, err := readObjects(body); err == nil {
			t.Errorf("%s: no error", body)
		}
	}
}
