package cluster

import (
	"encoding/json"
	"hash/maphash"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// RawItem is an object that is watched. Its fields are what a selection needs to know.
type RawItem struct {
	Namespace, Name, UID, ResourceVersion string
	Labels                                map[string]string
	// Controlled reports whether an owner reference names a controller.
	Controlled bool

	object *unstructured.Unstructured
	text   []byte // in place of the object, of which it takes a tenth
}

func itemOf(u *unstructured.Unstructured) RawItem {
	return RawItem{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion(),
		Labels: u.GetLabels(), Controlled: metav1.GetControllerOfNoCopy(u) != nil, object: u,
	}
}

// ReadRawItem reads an object as an item.
func ReadRawItem(body []byte) (RawItem, error) {
	u, err := readObject(body)
	if err != nil {
		return RawItem{}, err
	}
	return itemOf(u), nil
}

// Decode returns the object, which must not be changed.
func (i *RawItem) Decode() (*unstructured.Unstructured, error) {
	if i.object != nil {
		return i.object, nil
	}
	return readObject(i.text)
}

// Facts returns what the choice of an object depends on.
func (i *RawItem) Facts() engine.ObjectFacts {
	return engine.ObjectFacts{Namespace: i.Namespace, Name: i.Name, Labels: i.Labels, Controlled: i.Controlled}
}

// Own returns the item as its text, to be kept.
func (i RawItem) Own() RawItem {
	if i.object == nil {
		return i
	}
	if text, err := json.Marshal(i.object.Object); err == nil {
		i.object, i.text = nil, text
	}
	return i
}

// Size is how many bytes the text of an item takes that is its own.
func (i *RawItem) Size() int { return len(i.text) }

// digestSeed is that of Digest.
//
//nolint:gochecknoglobals // an immutable value
var digestSeed = maphash.MakeSeed()

// Digest identifies what an object says: two states of it with the same one differ, if at all, in their status and in what
// the server notes about writes. It is comparable within the process.
func (i *RawItem) Digest() uint64 {
	u, err := i.Decode()
	if err != nil {
		return 0 // it was read before
	}
	content := without(u.Object, "status", "apiVersion", "kind")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		content["metadata"] = without(metadata, "resourceVersion", "managedFields", "generation")
	}
	text, _ := json.Marshal(content) // it was read
	return maphash.Bytes(digestSeed, text)
}

func without(m map[string]any, keys ...string) map[string]any {
	out := maps.Clone(m)
	for _, key := range keys {
		delete(out, key)
	}
	return out
}
