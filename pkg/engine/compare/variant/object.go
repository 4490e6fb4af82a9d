package variant

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// minimalName is the name of minimal objects, and of their namespaces.
const minimalName = "minimal"

// Minimal returns an object with only the fields that a server requires of its kind, and whether there is
// one.
func (g *Generator) Minimal(ctx context.Context, gvk schema.GroupVersionKind) (engine.Target, bool) {
	k := g.kind(ctx, gvk)
	if k.typ.Schema == nil { // an unknown kind
		return engine.Target{}, false
	}
	atom, _ := k.typ.Atom()
	// or only the fields that all objects have
	if atom.Map == nil || len(k.mutations) == 0 && len(atom.Map.Fields) < 4 {
		return engine.Target{}, false
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetName(minimalName)
	t := engine.Target{Mapping: k.mapping}
	if k.namespaced {
		u.SetNamespace(minimalName)
		t.Namespace = engine.BareNamespace(minimalName)
	}
	if gvk.Kind == "Namespace" && gvk.Group == "" {
		u.SetLabels(map[string]string{corev1.LabelMetadataName: minimalName})
	}
	if needs := samplesOf[gvk.GroupKind().String()]; needs != "" {
		_ = yaml.Unmarshal([]byte(needs), &u.Object) // valid by construction
	}
	if _, ok := atom.Map.FindField("spec"); ok && u.Object["spec"] == nil { // always set in practice
		if spec, _ := k.typ.Field("spec").Atom(); spec.Map != nil {
			u.Object["spec"] = map[string]any{}
		}
	}
	k.completed(u.Object, k.typ, nil)
	t.Key, t.Object = engine.KeyOf(u), u
	return t, g.Valid(ctx, u)
}

// podSpecs leads to the specs of Pods, by kind.
var podSpecs = map[string][]string{ //nolint:gochecknoglobals // an immutable table
	"Pod": {"spec"}, "CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
	"Deployment": {"spec", "template", "spec"}, "StatefulSet": {"spec", "template", "spec"},
	"DaemonSet":  {"spec", "template", "spec"},
	"ReplicaSet": {"spec", "template", "spec"}, "ReplicationController": {"spec", "template", "spec"},
	"Job": {"spec", "template", "spec"},
}

// Requirements that no schema has. Policies do not ask for these labels, so that others can be left out.
const (
	neededPod        = `spec: {containers: [{name: c, image: "nginx:1"}]}`
	neededPods       = `template: {metadata: {labels: {minimal: minimal}}, ` + neededPod + `}`
	neededController = `spec: {selector: {matchLabels: {minimal: minimal}}, ` + neededPods + `}`
	neededJob        = `spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "nginx:1"}]}}}`
)

// samplesOf are the fields that objects need besides a name, by kind.
var samplesOf = map[string]string{ //nolint:gochecknoglobals // an immutable table
	"Pod": neededPod, "Job.batch": neededJob, "CronJob.batch": `spec: {schedule: "0 0 * * *", jobTemplate: {` + neededJob + `}}`,
	"Deployment.apps": neededController, "StatefulSet.apps": neededController,
	"DaemonSet.apps": neededController, "ReplicaSet.apps": neededController,
	"ReplicationController":     `spec: {selector: {minimal: minimal}, ` + neededPods + `}`,
	"Ingress.networking.k8s.io": `spec: {rules: [{host: minimal.example}]}`, // a rule or a backend is required
	"Binding":                   `target: {kind: Node, name: minimal}`,
}

// completed recursively adds the required fields of the structs in a value.
func (k *kind) completed(v any, t diff.Type, path fieldpath.Path) {
	list, _ := v.([]any)
	for i, item := range list {
		k.completed(item, t.Element(), appended(path, fieldpath.PathElement{Index: &i}))
	}
	fields, isMap := v.(map[string]any)
	atom, ok := t.Atom()
	if !isMap || !ok || atom.Map == nil || len(path) > maxDepth {
		return
	}
	for _, name := range k.required(t, path) {
		if _, there := fields[name]; there {
			continue
		}
		switch below, _ := t.Field(name).Atom(); {
		case below.List != nil:
			fields[name] = []any{}
		case below.Map != nil:
			fields[name] = map[string]any{}
		default:
			fields[name] = scalars(below)[0]
		}
	}
	for _, name := range sortedKeys(fields) {
		if _, found := atom.Map.FindField(name); found {
			k.completed(fields[name], t.Field(name), appended(path, fieldpath.FieldNameElement(name)))
		}
	}
}

func appended(path fieldpath.Path, e fieldpath.PathElement) fieldpath.Path {
	return append(path[:len(path):len(path)], e)
}

// required returns the required fields of the struct at a path.
func (k *kind) required(t diff.Type, path fieldpath.Path) []string {
	name := path.String()
	if t.Ref.NamedType != nil {
		name = *t.Ref.NamedType
	}
	if known, ok := k.needs.Load(name); ok {
		return known.([]string) // nothing else is stored
	}
	var out []string
	atom, ok := t.Atom()
	if ok && atom.Map != nil && k.validator != nil {
		for _, f := range sortedFields(atom.Map) {
			for _, found := range k.validator.Validate(appended(path, fieldpath.FieldNameElement(f.Name)), nil) {
				if found.Why == "is required" && (len(path) > 0 || f.Name != "status") {
					out = append(out, f.Name)
					break
				}
			}
		}
	}
	k.needs.Store(name, out)
	return out
}

// sameNames are lists in which several elements may have the same name.
var sameNames = []string{"volumeMounts", "subjects", "ownerReferences"} //nolint:gochecknoglobals // immutable

// holds reports whether a field has all required fields, elements with distinct keys and names, and valid
// labels and annotations.
func (k *kind) holds(v any, t diff.Type, path fieldpath.Path, field string) bool {
	atom, _ := t.Atom()
	switch v := v.(type) {
	case map[string]any:
		for _, name := range k.required(t, path) {
			if value, ok := v[name]; !ok || value == nil || value == "" {
				return false
			}
		}
		for name, below := range v {
			if !validEntry(field, name, below) ||
				!k.holds(below, t.Field(name), appended(path, fieldpath.FieldNameElement(name)), name) {
				return false
			}
		}
	case []any:
		var keys []string
		if atom.List != nil {
			keys = atom.List.Keys
		}
		seen := map[string]bool{}
		for i, item := range v {
			key := keyOf(keys, t.Element(), item)
			fields, _ := item.(map[string]any)
			name, named := fields["name"].(string)
			named = named && !slices.Contains(sameNames, field)
			if key == "" || len(keys) > 0 && seen[key] || named && (name == "" || seen["\x00"+name]) {
				return false
			}
			seen[key], seen["\x00"+name] = true, named
			if !k.holds(item, t.Element(), appended(path, fieldpath.PathElement{Index: &i}), field) {
				return false
			}
		}
	}
	return true
}

// validEntry reports whether an entry of labels or annotations is valid; entries of other maps always are.
func validEntry(field, key string, value any) bool {
	switch text, isText := value.(string); field {
	case labels, "matchLabels", "nodeSelector":
		return len(validation.IsQualifiedName(key)) == 0 &&
			(!isText || len(validation.IsValidLabelValue(text)) == 0)
	case "annotations":
		return len(validation.IsQualifiedName(strings.ToLower(key))) == 0
	}
	return true
}

// keyOf returns the key of an element; empty if a required key is missing.
func keyOf(keys []string, of diff.Type, item any) string {
	fields, ok := item.(map[string]any)
	if !ok || len(keys) == 0 {
		return "-"
	}
	out := ""
	for _, key := range keys {
		value, ok := fields[key]
		if !ok {
			value = of.DefaultOf(key)
		}
		if value == nil || value == "" {
			return ""
		}
		out += fmt.Sprint(value) + "\x00"
	}
	return out
}

// Valid reports whether a server would accept an object, as far as is known.
func (g *Generator) Valid(ctx context.Context, u *unstructured.Unstructured) bool {
	k := g.kind(ctx, u.GroupVersionKind())
	if u.GetName() == "" && u.GetGenerateName() == "" || k.namespaced && u.GetNamespace() == "" {
		return false
	}
	if u.GetKind() == "Namespace" && u.GroupVersionKind().Group == "" &&
		u.GetLabels()[corev1.LabelMetadataName] != u.GetName() {
		return false
	}
	if node, _, _ := unstructured.NestedString(u.Object, "target", "name"); k.gvk.Kind == "Binding" &&
		node == "" {
		return false
	}
	if k.validator != nil && len(k.validator.Validate(nil, u.Object)) > 0 {
		return false
	}
	return k.holds(u.Object, k.typ, nil, "") && validPods(u)
}

// validPods reports whether a Pod or a template has containers with names and images, and the selected
// labels.
func validPods(u *unstructured.Unstructured) bool {
	path, ok := podSpecs[u.GetKind()]
	if !ok {
		return true
	}
	spec, found, err := unstructured.NestedMap(u.Object, path...)
	if err != nil || !found {
		return false
	}
	containers, _ := spec["containers"].([]any)
	if len(containers) == 0 {
		return false
	}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		items, _ := spec[list].([]any)
		for _, item := range items {
			fields, _ := item.(map[string]any)
			name, _ := fields["name"].(string)
			image, hasImage := fields["image"].(string)
			if len(validation.IsDNS1123Label(name)) > 0 || !hasImage || !validEnv(fields) ||
				!reference.MatchString(image) {
				return false
			}
		}
	}
	return selected(u, path)
}

// validEnv reports whether each variable of a container has at most one source.
func validEnv(container map[string]any) bool {
	env, _ := container["env"].([]any)
	for _, item := range env {
		fields, _ := item.(map[string]any)
		if value, _ := fields["value"].(string); value != "" && fields["valueFrom"] != nil {
			return false
		}
	}
	return true
}

// reference matches image names.
var reference = regexp.MustCompile(`^([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?$`)

// selected reports whether a controller selects the labels of its template.
func selected(u *unstructured.Unstructured, path []string) bool {
	fields := []string{"spec", "selector", "matchLabels"}
	switch u.GetKind() {
	case "ReplicationController":
		fields = fields[:2]
	case "Pod", "Job", "CronJob":
		return true
	}
	want, _, _ := unstructured.NestedStringMap(u.Object, fields...)
	have, _, _ := unstructured.NestedStringMap(u.Object,
		append(path[:len(path)-1:len(path)-1], "metadata", "labels")...)
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return len(want) > 0
}

// valid reports whether a server would accept all objects of a variant, as far as is known.
func (g *Generator) valid(ctx context.Context, v Variant) bool {
	if old := v.OldObject; old != nil &&
		(engine.KeyOf(old).Named() != engine.KeyOf(v.Object).Named() || !g.Valid(ctx, old)) {
		return false
	}
	return g.Valid(ctx, v.Object) && (v.Namespace == nil || g.Valid(ctx, v.Namespace)) &&
		!slices.ContainsFunc(v.Beside, func(u *unstructured.Unstructured) bool { return !g.Valid(ctx, u) })
}
