package match

import (
	"fmt"
	"unicode"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Decode reads a match or exclude block: any, else all, else the old flat form, in Kyverno's order.
func Decode(n policydecode.Node) *Block {
	f := n.Fields()
	elsewhere(f)
	m := &Block{}
	any, all := f.At("any").List(), f.At("all").List()
	if len(any) > 0 && len(all) > 0 {
		n.Fail("has both any and all, of which only one is allowed")
	}
	switch {
	case len(any) > 0:
		m.filters = decodeFilters(any, "any")
	case len(all) > 0:
		m.filters, m.all = decodeFilters(all, "all"), true
	default:
		m.filters = []*Filter{decodeFilter(f)}
	}
	f.Accept("resources", "subjects", "roles", "clusterRoles")
	f.Done()
	return m
}

func decodeFilters(list []policydecode.Node, group string) []*Filter {
	out := make([]*Filter, len(list))
	for i, n := range list {
		f := n.Fields()
		elsewhere(f)
		out[i] = decodeFilter(f)
		out[i].Place = fmt.Sprintf("%s[%d]", group, i)
		f.Done()
	}
	return out
}

//nolint:gochecknoglobals // an immutable table
var resourceFields = []string{
	"kinds", "name", "names", "namespaces", "annotations", "selector",
	"namespaceSelector", "operations",
}

// elsewhere reports fields that are often indented wrongly, with their right place.
func elsewhere(f *policydecode.Fields) {
	f.Elsewhere("below resources", resourceFields...)
	f.Elsewhere("beside match, so indent it less", "match", "exclude", "context", "preconditions", "mutate",
		"conditions", "exceptions")
}

func decodeFilter(f *policydecode.Fields) *Filter {
	out := &Filter{Roles: f.At("roles").Texts(), ClusterRoles: f.At("clusterRoles").Texts()}
	for _, n := range f.At("subjects").List() {
		out.Subjects = append(out.Subjects, decodeSubject(n))
	}
	resources := f.At("resources").Fields()
	out.Operations = decodeOperations(resources.At("operations"))
	out.Kinds = decodeKinds(resources.At("kinds"))
	out.Name = resources.At("name").Text()
	out.Names = resources.At("names").Texts()
	out.Namespaces = resources.At("namespaces").Texts()
	checkPatterns(resources.At("name"), out.Name)
	checkPatterns(resources.At("names"), out.Names...)
	checkPatterns(resources.At("namespaces"), out.Namespaces...)
	policydecode.CheckNamespaces(resources.At("namespaces"))
	out.Annotations = resources.At("annotations").TextMap()
	out.Labels = resources.At("selector").Labels(selector.NewWildcardLabels)
	out.NamespaceLabels = resources.At("namespaceSelector").Labels(selector.NewWildcardLabels)
	resources.Elsewhere("beside resources", "subjects", "roles", "clusterRoles")
	resources.Done()
	return out
}

func checkPatterns(n policydecode.Node, patterns ...string) {
	for _, p := range patterns {
		if err := selector.CheckWildcard(p); err != nil {
			n.Fail("%w", err)
		}
	}
}

func decodeSubject(n policydecode.Node) Subject {
	f := n.Fields()
	s := Subject{Kind: f.At("kind").Text(), Namespace: f.At("namespace").Text(), Name: f.At("name").Text()}
	f.At("kind").Known(s.Kind, "User", "Group", "ServiceAccount")
	checkPatterns(f.At("name"), s.Name)
	f.Accept("apiGroup")
	f.Done()
	return s
}

func decodeOperations(n policydecode.Node) []string {
	out := n.Texts()
	for _, operation := range out {
		switch engine.Operation(operation) {
		case engine.OperationCreate, engine.OperationUpdate, engine.OperationDelete, "CONNECT":
		default:
			n.Fail("%q is not an operation; use CREATE, UPDATE, DELETE or CONNECT", operation)
		}
	}
	return out
}

func decodeKinds(n policydecode.Node) []selector.Kind {
	var out []selector.Kind
	for _, item := range n.List() {
		text := item.Text()
		if text == "" {
			continue
		}
		kind, err := selector.ParseKind(text)
		if err != nil {
			item.Fail("%w", err)
			continue
		}
		if kind.Subresource != "" && unicode.IsUpper(rune(kind.Subresource[0])) {
			item.Lint("stands for the subresource %s of the kind %s: a group stands before a version, as in apps/v1/Deployment", kind.Subresource, kind.Kind)
		}
		item.LintKind(engine.KindName{
			Groups: []string{kind.Group}, Versions: []string{kind.Version},
			Kind: kind.Kind, Subresource: kind.Subresource,
		})
		out = append(out, kind)
	}
	return out
}
