package variant

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Bounds of a variant's surroundings.
const (
	maxNames      = 32
	maxNamespaces = 24
	maxUsers      = 40
)

// step makes one change to a variant, and reports whether it could.
type step func(*Variant) bool

// after returns a changed copy of a variant, and whether the step applied.
func (v Variant) after(do step) (Variant, bool) {
	v.Object, v.Namespace, v.Beside = v.Object.DeepCopy(), v.Namespace.DeepCopy(), slices.Clone(v.Beside)
	for i, u := range v.Beside {
		v.Beside[i] = u.DeepCopy()
	}
	return v, do(&v)
}

// Indexes of the object itself and its Namespace.
const (
	itsNamespace = -2
	itself       = -1
)

// object returns the companion with an index, or the variant's own object; nil if it was removed, or for a
// missing Namespace.
func (v *Variant) object(beside int) *unstructured.Unstructured {
	switch {
	case beside == itsNamespace:
		return v.Namespace
	case beside == itself:
		return v.Object
	case beside < len(v.Beside):
		return v.Beside[beside]
	}
	return nil
}

// changeObject returns a step on the object that Variant.object returns.
func changeObject(beside int, do func(*unstructured.Unstructured) bool) step {
	return func(v *Variant) bool {
		u := v.object(beside)
		return u != nil && do(u)
	}
}

// around returns changes of the name, the user, the request, the namespace and its labels.
func (g *Generator) around(k *kind) [][]step {
	names := g.variantNames()
	if !k.namespaced {
		names = engine.Distinct(append(names, g.namespaces()...))
	}
	out := [][]step{
		each(names, named), each(g.users(), func(v *Variant, user engine.UserInfo) bool {
			v.Request.User = user
			return true
		}), each(g.prefixes(k), unnamed),
	}
	if g.literals.words["dryRun"] {
		out = append(out, []step{func(v *Variant) bool { v.Request.DryRun = true; return true }})
	}
	if !k.namespaced {
		return out
	}
	out = append(out, each(g.elsewhere(), moveTo))
	for _, field := range g.ofNamespace() {
		var lists [][]step
		for _, key := range g.literals.below[labels] {
			values := g.literals.labelValues(key)
			if field == labels {
				values = slices.DeleteFunc(values,
					func(value string) bool { return len(validation.IsValidLabelValue(value)) > 0 })
			}
			if key != corev1.LabelMetadataName {
				lists = append(lists, each(values, func(v *Variant, value string) bool {
					if v.Namespace == nil {
						v.Namespace = engine.BareNamespace(v.Key.Namespace)
					}
					return unstructured.SetNestedField(v.Namespace.Object, value, "metadata", field, key) == nil
				}))
			}
		}
		out = append(out, inTurn(lists))
	}
	return out
}

// spelled returns the strings that follow names in the policies, then near misses of them.
func (g *Generator) spelled(names ...string) []string {
	var exact, almost []string
	for _, name := range names {
		for _, value := range g.literals.near[name] {
			if text, ok := value.(string); ok {
				exact, almost = append(exact, texts(text)...), append(almost, similarStrings(text)...)
			}
		}
	}
	return engine.Distinct(append(exact, almost...))
}

func (g *Generator) variantNames() []string {
	out := slices.DeleteFunc(append(g.literals.long(), g.spelled("names", "name")...),
		func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) > 0 })
	return out[:min(len(out), maxNames)]
}

func (g *Generator) namespaces() []string {
	out := slices.DeleteFunc(g.spelled("namespaces", "namespace", "excludedNamespaces",
		"namespaceObject", "name"), func(name string) bool {
		return len(validation.IsDNS1123Label(name)) > 0
	})
	return out[:min(len(out), maxNamespaces)]
}

func (g *Generator) elsewhere() []string {
	return engine.Distinct(append(g.namespaces(), "default", "kube-system"))
}

// ofNamespace returns the metadata fields of a Namespace that policies may read.
func (g *Generator) ofNamespace() []string {
	words := g.literals.words
	if words["annotations"] && (words["namespaceObject"] || words["namespaces"] || words["Namespace"]) {
		return []string{labels, "annotations"}
	}
	return []string{labels}
}

// prefixes returns generateName prefixes, if policies ask for the names of Pods: controllers leave Pod names
// to the server.
func (g *Generator) prefixes(k *kind) []string {
	l := g.literals
	if g.o.Named || k.gvk != controllers[0] ||
		!l.words["names"] && !l.words["generateName"] && !slices.Contains(l.below["metadata"], "name") {
		return nil
	}
	names := append(g.variantNames(), minimalName)
	return names[:min(len(names), maxNamed)]
}

// users returns the users named in policies, and one unnamed, if policies ask for the user.
func (g *Generator) users() []engine.UserInfo {
	if !g.literals.words["userInfo"] && !g.literals.words["subjects"] {
		return nil
	}
	const service = "system:serviceaccount:"
	var exact, accounts, near []engine.UserInfo
	var names []string
	for _, field := range []string{"username", "groups", "name"} {
		for _, value := range g.literals.near[field] {
			name, _ := value.(string)
			if name = wildcards.Replace(name); name != "" && !strings.ContainsAny(name, "{}") {
				names = append(names, name)
			}
		}
	}
	names = engine.Distinct(names)
	for _, name := range names {
		exact = append(exact, engine.UserInfo{Username: name, Groups: []string{"other"}},
			engine.UserInfo{Username: "other", Groups: []string{"other", name}})
		near = append(near, engine.UserInfo{Username: "x" + name}, engine.UserInfo{Username: name + "x"})
	}
	for _, namespace := range append([]string{"other"}, g.namespaces()...) {
		for _, name := range append([]string{"other"}, names...) {
			accounts = append(accounts, engine.UserInfo{Username: service + namespace + ":" + name})
		}
	}
	out := []engine.UserInfo{
		{Username: "other", Groups: []string{"system:authenticated"}},
		{Username: service + minimalName + ":" + minimalName},
	}
	out = append(out, inTurn([][]engine.UserInfo{exact, accounts, near})...)
	return out[:min(len(out), maxUsers)]
}

func each[T any](values []T, do func(*Variant, T) bool) []step {
	out := make([]step, len(values))
	for i, value := range values {
		out[i] = func(v *Variant) bool { return do(v, value) }
	}
	return out
}

func named(v *Variant, name string) bool {
	rename(v.Object, name)
	v.Key.Name = name
	return true
}

// unnamed replaces the name with a generateName prefix: the server completes it on creation.
func unnamed(v *Variant, prefix string) bool {
	unstructured.RemoveNestedField(v.Object.Object, "metadata", "name")
	v.Object.SetGenerateName(prefix)
	v.OldObject, v.Key.Name, v.Request.Operation = nil, "", engine.OperationCreate
	return true
}

func moveTo(v *Variant, namespace string) bool {
	v.Object.SetNamespace(namespace)
	v.Key.Namespace, v.Namespace = namespace, engine.BareNamespace(namespace)
	return true
}

// together moves the object and the companions in its namespace to another one.
func together(v *Variant, namespace string) bool {
	from, moved := v.Object.GetNamespace(), false
	for _, u := range v.Beside {
		if from != "" && u.GetNamespace() == from {
			u.SetNamespace(namespace)
			moved = true
		}
	}
	return moveTo(v, namespace) && moved
}

// removed removes a companion.
func removed(beside int) step {
	return func(v *Variant) bool {
		there := beside < len(v.Beside)
		if there {
			v.Beside = slices.Delete(v.Beside, beside, beside+1)
		}
		return there
	}
}

// elsewhereAlone moves a companion to another namespace.
func elsewhereAlone(beside int) step {
	return changeObject(beside, func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() != "" && unstructured.SetNestedField(u.Object, "other", "metadata", "namespace") == nil
	})
}
