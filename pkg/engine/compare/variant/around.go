package variant

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// removed leaves out an object beside a variant.
func removed(beside int) step {
	return func(v Variant) (Variant, bool) {
		if beside >= len(v.Beside) {
			return v, false
		}
		v.Beside = slices.Delete(slices.Clone(v.Beside), beside, beside+1)
		return v, true
	}
}

// maxData bounds the entries of data that are varied beside those that policies name.
const maxData = 8

// emptied are the steps that leave out an entry of the data of an object beside a variant, or change it, whether policies name it
// or compute its name. The one that keeps data from being empty is left.
func emptied(u *unstructured.Unstructured, beside int) []step {
	data, _ := u.Object["data"].(map[string]any)
	keys := slices.DeleteFunc(sortedKeys(data), func(key string) bool { return key == minimalName })
	var out []step
	for _, key := range keys[:min(len(keys), maxData)] {
		change := func(do func(map[string]any)) step {
			return changing(beside, func(u *unstructured.Unstructured) bool {
				data, _ := u.Object["data"].(map[string]any)
				_, there := data[key]
				if there {
					do(data)
				}
				return there
			})
		}
		out = append(out, change(func(data map[string]any) { delete(data, key) }), change(func(data map[string]any) { data[key] = otherKey }))
	}
	return out
}

// renamed are the steps that give an object beside a variant other names.
func (g *Generator) renamed(beside int) []step {
	var out []step
	for _, name := range g.names() {
		out = append(out, changing(beside, func(u *unstructured.Unstructured) bool {
			rename(u, name)
			return true
		}))
	}
	return append(out, changing(beside, func(u *unstructured.Unstructured) bool {
		inOne := u.GetNamespace() != ""
		if inOne {
			u.SetNamespace("other")
		}
		return inOne
	}))
}

// maxNames bounds the names of variants.
const maxNames = 32

// names are those that policies name, and such as are almost the same.
func (g *Generator) names() []string {
	exact, almost := g.vocabulary.long(), []string(nil)
	for _, of := range []string{"names", "name"} {
		for _, value := range g.vocabulary.near[of] {
			exact = append(exact, namesOf(value)...)
			text, _ := value.(string)
			almost = append(almost, alike(text)...)
		}
	}
	almost = slices.DeleteFunc(almost, func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) > 0 })
	out := engine.Distinct(append(exact, almost...))
	return out[:min(len(out), maxNames)]
}

// dryRun makes the request one that stores nothing.
func dryRun(v Variant) (Variant, bool) {
	v.Request.DryRun = true
	return v, true
}

// around are differences of the name, the user, the request, the namespace and its labels.
func (g *Generator) around(k *kind) [][]step {
	names := g.names()
	if !k.namespaced {
		names = engine.Distinct(append(names, g.namespaces...))
	}
	out := [][]step{each(names, named), each(g.users(), by), each(g.prefixes(k), unnamed)}
	if g.vocabulary.words["dryRun"] {
		out = append(out, []step{dryRun})
	}
	if !k.namespaced {
		return out
	}
	out = append(out, each(g.elsewhere(), in))
	for _, field := range g.ofNamespace() {
		var lists [][]step
		for _, key := range g.vocabulary.keys {
			values := g.vocabulary.labelValues(key)
			if field == "labels" {
				values = slices.DeleteFunc(values, func(value string) bool { return len(validation.IsValidLabelValue(value)) > 0 })
			}
			if key != corev1.LabelMetadataName {
				lists = append(lists, each(values, func(value string) step { return inNamespaceWith(field, key, value) }))
			}
		}
		out = append(out, inTurn(lists))
	}
	return out
}

// elsewhere are the namespaces of variants.
func (g *Generator) elsewhere() []string {
	return engine.Distinct(append(slices.Clone(g.namespaces), "default", "kube-system"))
}

// ofNamespace are the fields of the metadata of a Namespace that policies may read.
func (g *Generator) ofNamespace() []string {
	out, words := []string{"labels"}, g.vocabulary.words
	if words["annotations"] && (words["namespaceObject"] || words["namespaces"] || words["Namespace"]) {
		out = append(out, "annotations")
	}
	return out
}

// prefixes are beginnings of names that a server makes, where policies ask for the names of Pods: what makes these leaves
// their names to the server.
func (g *Generator) prefixes(k *kind) []string {
	v := g.vocabulary
	if g.o.Named || k.gvk.Kind != "Pod" || !v.words["names"] && !v.words["generateName"] && !slices.Contains(v.below["metadata"], "name") {
		return nil
	}
	names := g.names()
	if len(names) == 0 {
		return []string{minimalName}
	}
	return names[:min(len(names), maxNamed)]
}

// each returns a step for each value.
func each[T any](values []T, of func(T) step) []step {
	out := make([]step, len(values))
	for i, value := range values {
		out[i] = of(value)
	}
	return out
}

// named gives the object another name.
func named(name string) step {
	return func(v Variant) (Variant, bool) {
		v.Object = v.Object.DeepCopy()
		rename(v.Object, name)
		v.Key.Name = name
		return v, true
	}
}

// unnamed takes the name from the object, so that the server makes one of its beginning. There is none before it is created.
func unnamed(prefix string) step {
	return func(v Variant) (Variant, bool) {
		v.Object, v.OldObject = v.Object.DeepCopy(), nil
		unstructured.RemoveNestedField(v.Object.Object, "metadata", "name")
		v.Object.SetGenerateName(prefix)
		v.Key.Name, v.Request.Operation = "", engine.OperationCreate
		return v, true
	}
}

// by makes the request one of another user.
func by(user engine.UserInfo) step {
	return func(v Variant) (Variant, bool) {
		v.Request.User = user
		return v, true
	}
}

// in moves the object to another namespace.
func in(namespace string) step {
	return func(v Variant) (Variant, bool) {
		v.Object = v.Object.DeepCopy()
		v.Object.SetNamespace(namespace)
		v.Key.Namespace = namespace
		v.Namespace = engine.BareNamespace(namespace)
		return v, true
	}
}

// together moves the object to another namespace, and with it what is beside it in its own.
func together(namespace string) step {
	return func(v Variant) (Variant, bool) {
		from, moved := v.Object.GetNamespace(), false
		v.Beside = slices.Clone(v.Beside)
		for i, u := range v.Beside {
			if from != "" && u.GetNamespace() == from {
				v.Beside[i], moved = u.DeepCopy(), true
				v.Beside[i].SetNamespace(namespace)
			}
		}
		v, ok := in(namespace)(v)
		return v, ok && moved
	}
}

// inNamespaceWith gives the namespace of the object a label, or an annotation.
func inNamespaceWith(field, key, value string) step {
	return func(v Variant) (Variant, bool) {
		namespace := v.Namespace
		if namespace == nil {
			namespace = engine.BareNamespace(v.Key.Namespace)
		}
		v.Namespace = namespace.DeepCopy()
		return v, unstructured.SetNestedField(v.Namespace.Object, value, "metadata", field, key) == nil
	}
}

// users are those that policies name, and one that none names, if they ask for the user.
func (g *Generator) users() []engine.UserInfo {
	words := g.vocabulary.words
	if !words["userInfo"] && !words["subjects"] {
		return nil
	}
	const service = "system:serviceaccount:"
	var names []string
	var users, accounts, near []engine.UserInfo
	for _, field := range []string{"username", "groups", "name"} {
		for _, value := range g.vocabulary.near[field] {
			name, ok := value.(string)
			if name = wildcards.Replace(name); !ok || name == "" || strings.ContainsAny(name, "{}") || slices.Contains(names, name) {
				continue
			}
			names = append(names, name)
			users = append(users, engine.UserInfo{Username: name, Groups: []string{"other"}}, engine.UserInfo{Username: "other", Groups: []string{"other", name}})
			near = append(near, engine.UserInfo{Username: "x" + name}, engine.UserInfo{Username: name + "x"})
		}
	}
	for _, namespace := range append([]string{"other"}, g.namespaces...) {
		for _, name := range append([]string{"other"}, names...) {
			accounts = append(accounts, engine.UserInfo{Username: service + namespace + ":" + name})
		}
	}
	out := []engine.UserInfo{{Username: "other", Groups: []string{"system:authenticated"}}, {Username: service + minimalName + ":" + minimalName}}
	out = append(out, inTurn([][]engine.UserInfo{users, accounts, near})...)
	return out[:min(len(out), maxUsers)]
}

// maxUsers bounds the users of one object's variants.
const maxUsers = 40
