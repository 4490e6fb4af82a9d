package kyverno

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/decode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// contextEntry is data that a rule loads under a name, when the name is first used.
type contextEntry struct {
	name string
	load loader
}

// loader gets the data of a context entry. The scope holds the entries before it.
type loader interface {
	load(e *execution, s *variables.Scope) (any, error)
}

// define makes the entries known to a scope, none of them loaded. One that would
// read something outside of the policy is left out where the user gives its value.
func (e *execution) define(s *variables.Scope, entries []*contextEntry) {
	for _, entry := range entries {
		if _, computed := entry.load.(*variable); !computed && e.isGiven(entry.name) {
			continue
		}
		s.Define(entry.name, func(at *variables.Scope) (any, error) { return entry.load.load(e, at) })
	}
}

func decodeContext(n decode.Node) []*contextEntry {
	var out []*contextEntry
	for _, item := range n.List() {
		f := item.Fields()
		name := f.At("name").Text()
		if name == "" {
			f.At("name").Fail("is missing")
		}
		out = append(out, &contextEntry{name: name, load: decodeLoader(f)})
		f.Done()
	}
	return out
}

// impureContext says why the entries may give something else in another run, or
// when the object has been changed; empty where they may not.
func impureContext(entries []*contextEntry) string {
	for _, entry := range entries {
		if source, ok := entry.load.(interface{ notIdempotent() string }); ok {
			if reason := source.notIdempotent(); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// decodeLoader reads the source of an entry; of several, the first in Kyverno's order.
func decodeLoader(f *decode.Fields) loader {
	var found []string
	for _, key := range []string{"configMap", "apiCall", "globalReference", "imageRegistry", "variable"} {
		if f.Has(key) {
			found = append(found, key)
		}
	}
	switch {
	case len(found) == 0:
		f.Fail("has no source: configMap, apiCall, globalReference, imageRegistry or variable")
		return nil
	case len(found) > 1:
		f.At(found[1]).Lint("has no effect beside %s", found[0])
	}
	switch source := f.At(found[0]); found[0] {
	case "variable":
		return decodeVariable(source)
	case "configMap":
		return decodeConfigMap(source)
	case "apiCall":
		return decodeAPICall(source)
	case "globalReference":
		return decodeGlobalReference(source)
	default:
		return decodeImageLookup(source)
	}
}

// variable is data that the policy itself computes.
type variable struct {
	value    *variables.Template // nil when there is none
	path     *dataPath
	fallback *variables.Template
}

func decodeVariable(n decode.Node) loader {
	f := n.Fields()
	v := &variable{value: decodeTemplate(f.At("value")), path: decodeDataPath(f.At("jmesPath")), fallback: decodeTemplate(f.At("default"))}
	if v.value == nil && v.path == nil && v.fallback == nil {
		n.Fail("needs a value, a jmesPath or a default")
	}
	f.Done()
	return v
}

// decodeTemplate reads a document that may hold variables; a missing one is nil.
func decodeTemplate(n decode.Node) *variables.Template {
	if n.Value == nil {
		return nil
	}
	t, err := variables.Parse(n.Value)
	if err != nil {
		n.Fail("%w", err)
		return nil
	}
	return t
}

// load evaluates value, jmesPath and default as Kyverno combines them: the path
// is applied to the value, or else to the whole context; the default stands in
// for a failed path, and for an empty result only where there is no value.
func (v *variable) load(e *execution, s *variables.Scope) (any, error) {
	var value any
	var err error
	if v.value != nil {
		if value, err = v.value.Render(s); err != nil {
			return nil, err
		}
	}
	if v.path != nil {
		query, err := v.path.expression(s)
		if err != nil {
			return nil, err
		}
		result, err := v.search(e, s, query, value)
		if decisive(e, err) || (err != nil && v.fallback == nil) {
			return nil, err
		}
		if err == nil && (result != nil || v.value != nil) {
			return notNil(result)
		}
		value = nil
	}
	if value == nil && v.fallback != nil {
		if value, err = v.fallback.Render(s); err != nil {
			return nil, err
		}
	}
	return notNil(value)
}

func (v *variable) notIdempotent() string {
	if reason := v.path.notIdempotent(); reason != "" {
		return reason
	}
	for _, t := range []*variables.Template{v.value, v.fallback} {
		if t != nil && t.NotIdempotent() != "" {
			return t.NotIdempotent()
		}
	}
	return ""
}

func (v *variable) search(e *execution, s *variables.Scope, query *jmespath.Expression, value any) (any, error) {
	if v.value != nil {
		return query.Search(e.interpreter, value)
	}
	return s.Query(query)
}

// decisive tells an error that no default may hide: the run was cancelled, or
// this program cannot do what the expression asks for.
func decisive(e *execution, err error) bool {
	return err != nil && (e.ctx.Err() != nil || isUnsupported(err))
}

func isUnsupported(err error) bool {
	var own *UnsupportedError
	var function *jmespath.UnsupportedError
	var undecided *match.UndecidedError
	var refused *RefusedCallError
	var unanswered *engine.UnansweredError
	return errors.As(err, &own) || errors.As(err, &function) || errors.As(err, &undecided) ||
		errors.As(err, &refused) || errors.As(err, &unanswered)
}

func notNil(value any) (any, error) {
	if value == nil {
		return nil, errors.New("evaluated to nil")
	}
	return value, nil
}

// configMap is data of a ConfigMap.
type configMap struct {
	name, namespace *variables.Template
	own             string // the namespace of a Policy
}

func decodeConfigMap(n decode.Node) loader {
	f := n.Fields()
	c := &configMap{name: decodeTemplate(f.At("name")), namespace: decodeTemplate(f.At("namespace")), own: n.Report.Namespace}
	if c.name == nil {
		f.At("name").Fail("is missing")
	}
	f.Done()
	return c
}

// load gives {data, metadata}, as Kyverno does; binaryData stays out.
func (c *configMap) load(e *execution, s *variables.Scope) (any, error) {
	name, err := renderText(c.name, s)
	if err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	namespace, err := c.namespaceIn(s)
	if err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	if e.world.Reader == nil {
		return nil, &UnsupportedError{Field: "configMap", Reason: "there is no cluster and no --world to read ConfigMap " + namespace + "/" + name + " from"}
	}
	key := engine.ObjectKey{Version: "v1", Namespace: namespace, Name: name}
	key.Kind = "ConfigMap"
	object, err := e.world.Reader.Get(e.ctx, key)
	if err != nil {
		return nil, fmt.Errorf("failed to get configmap %s/%s: %w", namespace, name, err)
	}
	return map[string]any{"data": object.Object["data"], "metadata": object.Object["metadata"]}, nil
}

// namespaceIn is where the ConfigMap is: what the policy says, else its own
// namespace, else "default". A Policy may not look anywhere else.
func (c *configMap) namespaceIn(s *variables.Scope) (string, error) {
	namespace, err := renderText(c.namespace, s)
	if err != nil {
		return "", err
	}
	switch {
	case namespace == "" && c.own != "":
		return c.own, nil
	case namespace == "":
		return "default", nil
	case c.own != "" && namespace != c.own:
		return "", fmt.Errorf("a Policy in namespace %s cannot read from namespace %s", c.own, namespace)
	}
	return namespace, nil
}

// renderText renders a template that must give a string; a missing one is empty.
func renderText(t *variables.Template, s *variables.Scope) (string, error) {
	if t == nil {
		return "", nil
	}
	value, err := t.Render(s)
	if err != nil {
		return "", err
	}
	out, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("must be a string, not %s", decode.TypeName(value))
	}
	return out, nil
}
