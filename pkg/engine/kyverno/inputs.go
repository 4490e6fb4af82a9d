package kyverno

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

type inputs struct {
	exceptions []*exception
	globals    Globals
	values     variables.Values // the user's
	lists      sync.Map         // *patching.Lists by kind
}

// listsOf returns how the lists of a kind with a schema merge, cached for all rules and objects.
func (in *inputs) listsOf(s engine.Schema, gvk schema.GroupVersionKind) *patching.Lists {
	if known, ok := in.lists.Load(gvk); ok && known.(*patching.Lists).Types == s.Types {
		return known.(*patching.Lists)
	}
	l := patching.NewLists(s, gvk)
	in.lists.Store(gvk, l)
	return l
}

func (in *inputs) add(r *policydecode.Report, d engine.Document) {
	root := policydecode.Node{Report: r, Value: d.Object().Object}
	switch d.Key.Kind {
	case "PolicyException":
		in.exceptions = append(in.exceptions, decodeException(r, d))
	case "GlobalContextEntry":
		if in.globals == nil {
			in.globals = Globals{}
		}
		in.globals.Add(d.Key.Name, root)
	case valuesKind.Kind:
		in.values.Add(root)
	}
}

// Supplied returns the Namespaces whose labels a Values document gives. Dialect is an engine.Supplier.
func (*Dialect) Supplied(d engine.Document) []*unstructured.Unstructured {
	if d.Key.GroupKind != valuesKind {
		return nil
	}
	return variables.ValuesNamespaces(d.Object())
}

func (e *execution) inputs() *inputs { return e.rule.policy.inputs }

// isGiven reports whether the user gives the value of a context entry.
func (e *execution) isGiven(name string) bool {
	_, given := e.given[name]
	return given || e.inputs().values.GivesElements(e.rule.policy.name, e.rule.written, name)
}

// givenNames lists the names to which Values documents give values: the first parts of all keys.
func givenNames(documents []engine.Document) []string {
	var names []string
	for _, d := range documents {
		if d.Key.GroupKind == valuesKind {
			variables.Contains(d.Object().Object, func(value any) bool {
				for key := range mapping(value) {
					name, _, _ := strings.Cut(key, ".")
					names = append(names, name)
					if strings.HasPrefix(key, "request.oldObject") || name == "oldObject" {
						names = append(names, "request.oldObject")
					}
				}
				return false
			})
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
