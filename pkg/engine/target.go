package engine

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectKey identifies an object: by UID where it is known, else by group,
// kind, namespace and name. The version is how the object was read and never
// a part of its identity.
type ObjectKey struct {
	schema.GroupKind
	Version, Namespace, Name, Subresource string
	UID                                   types.UID
	// Cluster is the name of the object's cluster in what is shown of several; an evaluation is of one
	// cluster, and has none.
	Cluster string
}

// KeyOf reads the key of an object from its own metadata.
func KeyOf(u *unstructured.Unstructured) ObjectKey {
	gvk := u.GroupVersionKind()
	return ObjectKey{
		GroupKind: gvk.GroupKind(), Version: gvk.Version,
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
	}
}

// objectKeyJSON is an ObjectKey in plans, journals and reports.
type objectKeyJSON struct {
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	Subresource string    `json:"subresource,omitempty"`
	Namespace   string    `json:"namespace,omitempty"`
	Name        string    `json:"name"`
	UID         types.UID `json:"uid,omitempty"`
	Cluster     string    `json:"cluster,omitempty"`
}

// MarshalJSON writes group and version as the apiVersion of the object.
func (k ObjectKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(objectKeyJSON{
		APIVersion: k.GroupVersionKind().GroupVersion().String(), Kind: k.Kind, Subresource: k.Subresource,
		Namespace: k.Namespace, Name: k.Name, UID: k.UID, Cluster: k.Cluster,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote, but for the cluster: a file is of one.
func (k *ObjectKey) UnmarshalJSON(text []byte) error {
	var in objectKeyJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	gvk := schema.FromAPIVersionAndKind(in.APIVersion, in.Kind)
	*k = ObjectKey{
		GroupKind: gvk.GroupKind(), Version: gvk.Version,
		Namespace: in.Namespace, Name: in.Name, Subresource: in.Subresource, UID: in.UID,
	}
	return nil
}

// GroupVersionKind is the type in the version that the object was read in.
func (k ObjectKey) GroupVersionKind() schema.GroupVersionKind {
	return k.GroupKind.WithVersion(k.Version)
}

// Identity returns the key reduced to what identifies the object, as a key for maps.
func (k ObjectKey) Identity() ObjectKey {
	k.Version = ""
	if k.UID != "" {
		return ObjectKey{UID: k.UID, Subresource: k.Subresource, Cluster: k.Cluster}
	}
	return k
}

// Named returns the key without version and UID. Two objects that had the same name,
// one after the other, share it.
func (k ObjectKey) Named() ObjectKey {
	k.Version, k.UID = "", ""
	return k
}

// String returns the name of the object for messages: "apps/Deployment shop/web",
// "Node worker-1", "Deployment/scale shop/web", and with a cluster "Node worker-1 on prod".
func (k ObjectKey) String() string {
	var b strings.Builder
	if k.Group != "" {
		b.WriteString(k.Group + "/")
	}
	b.WriteString(k.Kind)
	if k.Subresource != "" {
		b.WriteString("/" + k.Subresource)
	}
	b.WriteString(" ")
	if k.Namespace != "" {
		b.WriteString(k.Namespace + "/")
	}
	b.WriteString(k.Name)
	if k.Cluster != "" {
		b.WriteString(" on " + k.Cluster)
	}
	return b.String()
}

// Operation is what the simulated admission request does to the object.
type Operation string

// The operations a user may ask for. OperationAuto stands for UPDATE, but a rule that
// does not run only because of the operation is evaluated as for CREATE; its Step
// is marked AsCreated.
const (
	OperationAuto   Operation = "auto"
	OperationCreate Operation = "CREATE"
	OperationUpdate Operation = "UPDATE"
	OperationDelete Operation = "DELETE"
)

// UserInfo is the requesting user that policies see.
type UserInfo struct {
	Username string
	Groups   []string
}

// Empty reports whether no user was simulated at all.
func (u UserInfo) Empty() bool { return u.Username == "" && len(u.Groups) == 0 }

// Request is the admission request that an evaluation simulates.
type Request struct {
	Operation Operation
	User      UserInfo
	// DryRun says that the request is to store nothing. What is evaluated for people is not such.
	DryRun bool
	// Reinvocation marks the second round, in which a program runs only what
	// its language runs again.
	Reinvocation bool
}

// Target is one live object and what admission would know about it. Nothing in
// it is ever modified.
type Target struct {
	Key    ObjectKey
	Object *unstructured.Unstructured
	Origin string // as in Document; empty for an object of a cluster
	// OldObject is the object before the request: nil for CREATE, and the object itself for
	// a DELETE and for an UPDATE that is simulated. That of a request that was made is what it was.
	OldObject *unstructured.Unstructured
	// Namespace is the object's Namespace; nil when the object is
	// cluster-scoped, or when the Namespace cannot be read.
	Namespace *unstructured.Unstructured
	// Mapping is nil when the kind is known from a manifest alone.
	Mapping *meta.RESTMapping
	Request Request
	// Tainted reports that fields of the object were made of a Secret by rules before.
	Tainted bool
	// Invocation is what a program keeps of the first round for the second; nil
	// where there is no second one, as for the subject of an Effect.
	Invocation *Invocation
}

// IsSecret reports whether the object is a core Secret, by its kind or its resource.
func (t *Target) IsSecret() bool {
	return t.Key.IsSecret() || IsSecret(t.Object) || IsSecret(t.OldObject) ||
		t.Mapping != nil && t.Mapping.Resource.GroupResource() == schema.GroupResource{Resource: "secrets"}
}

// HoldsSecrets reports whether the object is a Secret, or Tainted: what reads it may be confidential.
func (t *Target) HoldsSecrets() bool { return t.Tainted || t.IsSecret() }

// Invocation is what one program, on one object, keeps between the two rounds of
// an admission request.
type Invocation struct {
	// Kept is of the program's own choice.
	Kept any
	// Again asks for the second round even where no later program changes the
	// object behind this one.
	Again bool
}

// With returns the target with another state of the same object.
func (t Target) With(object *unstructured.Unstructured) Target {
	t.Object = object
	return t
}
