package factory

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// Resolve reads arguments as kubectl does: TYPE and TYPE/NAME, where types may be joined by commas, or a
// TYPE followed by NAMES. If all arguments are types, "deploy svc" names no Deployment. A TYPE may be a
// category, such as "all", of a mapper that is client-go's restmapper.CategoryExpander.
func Resolve(mapper meta.RESTMapper, args []string) ([]engine.ObjectKey, error) {
	if names, err := namesBehindType(mapper, args); err != nil || names != nil {
		return names, err
	}
	var keys []engine.ObjectKey
	for _, arg := range args {
		types, name, named := strings.Cut(arg, "/")
		if named && (name == "" || strings.Contains(name, "/") || strings.Contains(types, ",")) {
			return nil, fmt.Errorf("argument %q: use TYPE, TYPE,TYPE or TYPE/NAME", arg)
		}
		if named {
			gk, err := KindOf(mapper, types)
			if err != nil {
				return nil, err
			}
			keys = append(keys, engine.ObjectKey{GroupKind: gk, Name: name})
			continue
		}
		kinds, err := kindsOf(mapper, types)
		if err != nil {
			return nil, err
		}
		for _, gk := range kinds {
			keys = append(keys, engine.ObjectKey{GroupKind: gk})
		}
	}
	return keys, nil
}

// Excluded reads --exclude and --exclude-namespaces as flags.Objects validates them. An unknown TYPE is an
// error.
func Excluded(mapper meta.RESTMapper, objects, namespaces []string) ([]engine.Selection, error) {
	var out []engine.Selection
	for _, text := range objects {
		var s engine.Selection
		rest, name := path.Split(text)
		rest = strings.TrimSuffix(rest, "/")
		if namespace, typed, ok := strings.Cut(rest, "/"); ok {
			s.Namespace, rest = namespace, typed
		}
		if s.Name = name; selector.HasWildcard(rest) {
			s.Group, s.Kind, s.Resource = "*", "*", strings.ToLower(rest)
			out = append(out, s)
			continue
		}
		kinds, err := kindsOf(mapper, rest)
		if err != nil {
			return nil, fmt.Errorf("--exclude %s: %w", text, err)
		}
		for _, gk := range kinds {
			s.Group, s.Kind = gk.Group, gk.Kind
			out = append(out, s)
		}
	}
	for _, name := range namespaces {
		out = append(out, engine.Selection{Kind: "Namespace", Name: name},
			engine.Selection{Group: "*", Kind: "*", Namespace: name})
	}
	return out, nil
}

// namesBehindType reads "TYPE NAME ...", and returns nil for anything else.
func namesBehindType(mapper meta.RESTMapper, args []string) ([]engine.ObjectKey, error) {
	if len(args) < 2 || slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "/") }) {
		return nil, nil
	}
	kinds, err := kindsOf(mapper, args[0])
	if err != nil {
		return nil, err
	}
	named := false
	for _, arg := range args[1:] {
		var unknown *unknownTypeError
		_, err := kindsOf(mapper, arg)
		if named = named || errors.As(err, &unknown); err != nil && !named {
			return nil, err
		}
	}
	if !named {
		return nil, nil
	}
	var keys []engine.ObjectKey
	for _, gk := range kinds {
		for _, name := range args[1:] {
			keys = append(keys, engine.ObjectKey{GroupKind: gk, Name: name})
		}
	}
	return keys, nil
}

// kindsOf returns the distinct kinds of types and categories that are joined by commas.
func kindsOf(mapper meta.RESTMapper, types string) ([]schema.GroupKind, error) {
	var out []schema.GroupKind
	for _, t := range strings.Split(types, ",") {
		if e, ok := mapper.(interface {
			Expand(category string) ([]schema.GroupResource, bool)
		}); ok {
			if category, ok := e.Expand(t); ok {
				for _, r := range category {
					if gk, err := KindOf(mapper, r.String()); err == nil {
						out = append(out, gk)
					}
				}
				continue
			}
		}
		gk, err := KindOf(mapper, t)
		if err != nil {
			return nil, err
		}
		out = append(out, gk)
	}
	return engine.Distinct(out), nil
}

// KindOf returns the kind of "deploy", "deployments.apps" or "deployments.v1.apps"; the first of several
// groups, as kubectl does.
func KindOf(mapper meta.RESTMapper, text string) (schema.GroupKind, error) {
	full, partial := schema.ParseResourceArg(strings.ToLower(text))
	if full != nil {
		if kinds, err := mapper.KindsFor(*full); err == nil && len(kinds) > 0 {
			return kinds[0].GroupKind(), nil
		}
	}
	kinds, err := mapper.KindsFor(partial.WithVersion(""))
	if meta.IsNoMatchError(err) || (err == nil && len(kinds) == 0) {
		meant := engine.Nearest(partial.Resource, snapshot.Resources())
		near := schema.GroupVersionResource{Group: partial.Group, Resource: meant}
		if kinds, _ := mapper.KindsFor(near); len(kinds) == 0 {
			meant = ""
		}
		return schema.GroupKind{}, &unknownTypeError{Type: text, Meant: meant}
	}
	if err != nil {
		return schema.GroupKind{}, err
	}
	return kinds[0].GroupKind(), nil
}

// unknownTypeError reports a type that neither the cluster nor the manifests have.
type unknownTypeError struct {
	Type  string
	Meant string // the probable type; empty if unknown
}

// Error names the type.
func (e *unknownTypeError) Error() string {
	text := fmt.Sprintf("there is no resource type %q", e.Type)
	if e.Meant != "" {
		text += fmt.Sprintf("; did you mean %q?", e.Meant)
	}
	return text
}
