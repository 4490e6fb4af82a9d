package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectKey identifies an object: by UID if known, else by group, kind, namespace and name. The version is
// the one read, never a part of the identity.
type ObjectKey struct {
	schema.GroupKind
	Version, Namespace, Name, Subresource string
	UID                                   types.UID
	// Cluster is the object's cluster in output about several; empty in an evaluation, which is of one.
	Cluster string
	// Of is the maker of an object that does not exist; else zero.
	Of Maker
}

// Maker is the object, in the same namespace, of which another would be made: by its controller, or by
// Template, an ExpansionTemplate of Gatekeeper.
type Maker struct {
	schema.GroupKind
	Version, Name, Template string
}

// Made returns the key of an object that would be made of the one with the key, by its controller or by a
// template. An object made of that in turn has the same Maker.
func (k ObjectKey) Made(object *unstructured.Unstructured, template string) ObjectKey {
	out := KeyOf(object)
	if out.Of = k.Of; k.Of == (Maker{}) {
		out.Of = Maker{GroupKind: k.GroupKind, Version: k.Version, Name: k.Name}
	}
	out.Of.Template = template
	return out
}

// Place is the key of the existing object: the Maker, or the key itself.
func (k ObjectKey) Place() ObjectKey {
	if k.Of == (Maker{}) {
		return k
	}
	return ObjectKey{
		GroupKind: k.Of.GroupKind, Version: k.Of.Version, Namespace: k.Namespace, Name: k.Of.Name,
		Cluster: k.Cluster,
	}
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
	APIVersion  string     `json:"apiVersion"`
	Kind        string     `json:"kind"`
	Subresource string     `json:"subresource,omitempty"`
	Namespace   string     `json:"namespace,omitempty"`
	Name        string     `json:"name"`
	UID         types.UID  `json:"uid,omitempty"`
	Cluster     string     `json:"cluster,omitempty"`
	Of          *makerJSON `json:"of,omitempty"`
}

// makerJSON is a Maker in reports.
type makerJSON struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Template   string `json:"template,omitempty"`
}

// MarshalJSON writes group and version as the apiVersion of the object.
func (k ObjectKey) MarshalJSON() ([]byte, error) {
	out := objectKeyJSON{
		APIVersion: k.GroupVersionKind().GroupVersion().String(), Kind: k.Kind, Subresource: k.Subresource,
		Namespace: k.Namespace, Name: k.Name, UID: k.UID, Cluster: k.Cluster,
	}
	if k.Of != (Maker{}) {
		out.Of = &makerJSON{
			k.Place().GroupVersionKind().GroupVersion().String(), k.Of.Kind, k.Of.Name, k.Of.Template,
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the output of MarshalJSON, without the cluster, since a file is of one, and without Of,
// since a file has existing objects.
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

// Named returns the key without version and UID. Successive objects of the same name share it.
func (k ObjectKey) Named() ObjectKey {
	k.Version, k.UID = "", ""
	return k
}

// Whole is Named without the subresource.
func (k ObjectKey) Whole() ObjectKey {
	k.Subresource = ""
	return k.Named()
}

// String formats the key for messages: "apps/Deployment shop/web", "Node worker-1", "Deployment/scale
// shop/web", and with a cluster "Node worker-1 on prod". An object that does not exist is "Pod of
// apps/Deployment shop/web (as its controller would create it)".
func (k ObjectKey) String() string {
	var b strings.Builder
	if k.Of != (Maker{}) {
		by := "as its controller would create it"
		if k.Of.Template != "" {
			by = "as ExpansionTemplate " + k.Of.Template + " generates it"
		}
		return k.typeName() + " of " + k.Place().String() + " (" + by + ")"
	}
	b.WriteString(k.typeName())
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

// typeName is the kind with its group.
func (k ObjectKey) typeName() string {
	return strings.TrimPrefix(k.Group+"/"+k.Kind, "/")
}

// Operation is the operation of the simulated admission request.
type Operation string

// The operations a user may ask for. OperationAuto stands for UPDATE, with the differences of a CREATE in
// Change.Created. Programs treat it as UPDATE.
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

// Empty reports whether no user is simulated.
func (u UserInfo) Empty() bool { return u.Username == "" && len(u.Groups) == 0 }

// Request is the admission request that an evaluation simulates.
type Request struct {
	Operation Operation
	User      UserInfo
	// DryRun says that the request is to store nothing. An evaluation for people does not set it.
	DryRun bool
	// Reinvocation marks the second round, in which a program runs only the rules that its language runs again.
	Reinvocation bool
}

// Target is one live object with the context of its admission. Nothing in it is ever modified.
type Target struct {
	Key    ObjectKey
	Object *unstructured.Unstructured
	// Written is the object as in its manifest, while Object is as a server decodes it, with defaults; nil for
	// an object of a cluster.
	Written *unstructured.Unstructured
	Origin  string // as in Document; empty for an object of a cluster
	// OldObject is the object before the request: nil for CREATE, the object itself for DELETE and for a
	// simulated UPDATE, and the recorded one for a request that was made.
	OldObject *unstructured.Unstructured
	// Namespace is the object's Namespace; nil when the object is cluster-scoped, or the Namespace cannot be
	// read.
	Namespace *unstructured.Unstructured
	// Mapping is nil when the kind is known only from a manifest.
	Mapping *meta.RESTMapping
	Request Request
	// Ignored says which rules ignore the object.
	Ignored Ignored
	// Tainted reports that earlier rules made fields of the object from a Secret.
	Tainted bool
	// Invocation keeps a program's state of the first round for the second; nil without a second round, as for
	// the subject of an Effect.
	Invocation *Invocation
}

// IsSecret reports whether the object is a core Secret, by its kind or its resource.
func (t *Target) IsSecret() bool {
	return t.Key.IsSecret() || IsSecret(t.Object) || IsSecret(t.OldObject) ||
		t.Mapping != nil && t.Mapping.Resource.GroupResource() == schema.GroupResource{Resource: "secrets"}
}

// HoldsSecrets reports whether the object is a Secret, or Tainted: reading it may be confidential.
func (t *Target) HoldsSecrets() bool { return t.Tainted || t.IsSecret() }

// Invocation is the state of one program, on one object, between the two rounds of an admission request.
type Invocation struct {
	// Kept is for the program's own use.
	Kept any
	// Again asks for the second round even where no later program changes the object.
	Again bool
}

// With returns the target with another state of the same object.
func (t Target) With(object *unstructured.Unstructured) Target {
	t.Object = object
	return t
}

// As returns the target in a request of another operation.
func (t Target) As(o Operation) Target {
	t.Request.Operation = o
	switch {
	case o == OperationCreate:
		t.OldObject = nil
	case t.OldObject == nil || o == OperationDelete:
		t.OldObject = t.Object
	}
	return t
}

// Open reports whether the user left the operation open.
func (r Request) Open() bool { return r.Operation == "" || r.Operation == OperationAuto }

// IdentityError is a rule that would turn an object into another one, which no server accepts.
type IdentityError struct{ Field string }

// Error names the field.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("changes %s, which makes it another object", e.Field)
}

// SameObject returns an *IdentityError if two states differ in the object's identity: apiVersion, kind, name,
// namespace or uid.
func SameObject(before, after map[string]any) error {
	for _, path := range [][]string{
		{"apiVersion"},
		{"kind"},
		{"metadata", "name"},
		{"metadata", "namespace"},
		{"metadata", "uid"},
	} {
		was, _, _ := unstructured.NestedFieldNoCopy(before, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(after, path...)
		if !reflect.DeepEqual(was, is) {
			return &IdentityError{Field: strings.Join(path, ".")}
		}
	}
	return nil
}

// Identical reports whether two JSON values are the same in memory, as opposed to equal. Scalars and empty
// lists are the same if equal. It does not descend into values.
func Identical(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && identity(x) == identity(y)
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return a == b
}

func identity(m map[string]any) unsafe.Pointer { return reflect.ValueOf(m).UnsafePointer() }

// Resource returns the resource of the object: from its Mapping, else from the mapper of a world, which may
// be nil, else the usual plural of the kind.
func (t *Target) Resource(w *World) schema.GroupVersionResource {
	mapping, gvk := t.Mapping, t.Key.GroupVersionKind()
	if mapping == nil && w != nil && w.Mapper != nil {
		mapping, _ = w.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if mapping != nil {
		return mapping.Resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural
}

// ReadNamespace returns the object's Namespace: the target's own, or else w's. It is nil for a cluster-scoped
// object.
//
// A Namespace that w lacks, because manifests leave it out, is known only by its name: the evaluation goes on
// as if it had no labels of its own, and w is notified. The error is a *NamespaceError.
func (t Target) ReadNamespace(ctx context.Context, w *World) (*unstructured.Unstructured, error) {
	name := t.Key.Namespace
	if t.Namespace != nil {
		w.note(ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Name: name})
	}
	switch {
	case t.Namespace != nil || name == "":
		return t.Namespace, nil
	case w.Reader == nil:
		return nil, &NamespaceError{Name: name, Err: errNoReader}
	}
	namespace, err := w.ReadNamespace(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		w.LackNamespace(name)
		return BareNamespace(name), nil
	case err != nil:
		return nil, &NamespaceError{Name: name, Err: err}
	}
	return namespace, nil
}

// NamespaceLabels returns the labels of the object's Namespace for a selector with the given keys; nil for an
// object in no namespace. A selector of only the name needs no readable Namespace. It fails like
// ReadNamespace.
func (t Target) NamespaceLabels(ctx context.Context, w *World, keys []string) (map[string]string, error) {
	if t.Namespace == nil && t.Key.Namespace != "" && OnlyName(keys) {
		return BareNamespace(t.Key.Namespace).GetLabels(), nil
	}
	namespace, err := t.ReadNamespace(ctx, w)
	if err != nil || namespace == nil {
		return nil, err
	}
	return LabelsOfNamespace(namespace), nil
}

// LabelsOfNamespace returns the labels of a Namespace on an API server, which sets the name label; manifests
// seldom do.
func LabelsOfNamespace(namespace *unstructured.Unstructured) map[string]string {
	labels := namespace.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = namespace.GetName()
	return labels
}

// OnlyName reports whether the keys have no label besides the name label of every Namespace.
func OnlyName(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return key != corev1.LabelMetadataName })
}

// BareNamespace returns a Namespace with only the name label of every Namespace.
func BareNamespace(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{
			"name": name, "labels": map[string]any{corev1.LabelMetadataName: name},
		},
	}}
}

// LackNamespace reports that the evaluation depends on labels of a missing Namespace.
func (w *World) LackNamespace(name string) {
	if w.Lack != nil {
		w.Lack(&UnreadableError{What: "Namespace " + name, Err: errNoNamespace})
	}
}

var errNoNamespace = errors.New("it is not there, and rules that ask for its labels are evaluated as if it had none; --world adds it to manifests")

// ReadNamespace reads a Namespace. The Reader must not be nil, and its error is returned.
func (w *World) ReadNamespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return w.Get(ctx, ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: name})
}

// NamespaceError is a Namespace that cannot be read: its labels are unknown.
type NamespaceError struct {
	Name string
	Err  error
}

var errNoReader = errors.New("there is nothing to read it from")

// Error names the Namespace and the reason.
func (e *NamespaceError) Error() string {
	return fmt.Sprintf("Namespace %s cannot be read: %v", e.Name, e.Err)
}

// Unwrap returns the reason.
func (e *NamespaceError) Unwrap() error { return e.Err }
