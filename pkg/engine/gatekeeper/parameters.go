package gatekeeper

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// decodeSource reads parameters.assign. It reports and returns false unless there is exactly one value.
func (m *mutator) decodeSource(n policydecode.Node) (source, bool) {
	f := n.Fields()
	if n.Value != nil && f.Values == nil { // the wrong type has been reported
		return source{}, false
	}
	set := 0
	for _, name := range []string{"value", "fromMetadata", "externalData"} {
		if f.Has(name) {
			set++
		}
	}
	const union = "one of `externalData`, `value` or `fromMetadata`: invalid assign field"
	switch {
	case set == 0:
		n.Fail("assign must set " + union)
		return source{}, false
	case set > 1:
		n.Fail("assign must only set " + union)
		return source{}, false
	}
	s := source{Value: f.At("value").Value}
	from := f.At("fromMetadata").Fields()
	if field := from.At("field"); f.Has("fromMetadata") {
		s.Metadata = field.Text()
		if s.Metadata != "name" && s.Metadata != "namespace" {
			field.Fail("field %s is not recognized: invalid fromMetadata field; only name and namespace can be read", s.Metadata)
		}
		from.Done()
	}
	if external := f.At("externalData"); f.Has("externalData") {
		s.External = m.decodeExternal(external)
	}
	f.Done()
	return s, true
}

func (m *mutator) decodeExternal(n policydecode.Node) *external {
	f := n.Fields()
	e := &external{Provider: f.At("provider").Text(), DataSource: f.At("dataSource").Text(), Location: m.path}
	policy, fallback := f.At("failurePolicy"), f.At("default")
	f.Done()
	if e.Provider == "" {
		f.At("provider").Fail("provider is required")
	}
	if e.DataSource == "" {
		e.DataSource = "ValueAtLocation"
	}
	if !slices.Contains([]string{"ValueAtLocation", "Username"}, e.DataSource) {
		f.At("dataSource").Fail("must be ValueAtLocation or Username, not %q", e.DataSource)
	}
	switch policy.Text() {
	case "", "Fail", "Ignore":
	case "UseDefault":
		if fallback.Text() == "" {
			fallback.Fail("`default` must not be empty when `failurePolicy` is set to `UseDefault`")
		}
	default:
		policy.Fail("must be Fail, Ignore or UseDefault, not %q", policy.Text())
	}
	return e
}

func (m *mutator) decodeAssign(parameters *policydecode.Fields) action {
	n := parameters.At("assign")
	s, ok := m.decodeSource(n)
	if !ok {
		return nil
	}
	if list, isList := m.path.last().(listNode); isList && !list.glob() {
		if err := checkElement(list, s); err != nil {
			n.Fail("%w", err)
		} else if _, isInt := list.Value.(int64); isInt {
			n.Lint("Gatekeeper itself refuses to write whole elements of a list whose key is a number")
		}
	}
	return &assign{source: s}
}

// checkElement validates that an element to add to a list is the one that the location names.
func checkElement(list listNode, s source) error {
	switch {
	case s.External != nil:
		return errors.New("cannot assign external data response to a list")
	case s.Metadata != "":
		return errors.New("cannot assign a metadata field to a list")
	}
	element, ok := s.Value.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid value: `%s`, only objects can be added to keyed lists", quoted(s.Value))
	}
	if key := element[list.Key]; !sameKey(key, list.Value) {
		return fmt.Errorf("adding object to list with different key %s: list key %v, object key %s", list.Key, list.Value, quoted(key))
	}
	return nil
}

func (m *mutator) decodeAssignMetadata(parameters *policydecode.Fields) action {
	n := parameters.At("assign")
	s, ok := m.decodeSource(n)
	if !ok {
		return nil
	}
	if _, isText := s.Value.(string); s.Value != nil && !isText {
		n.Fail("spec.parameters.assign.value field must be a string for AssignMetadata %q", m.name)
	}
	if s.External != nil && s.External.DataSource != "Username" {
		n.Fail("only username data source is supported for assignmetadata %s", m.name)
	}
	return &assign{source: s, adds: true}
}

func (m *mutator) decodeModifySet(parameters *policydecode.Fields) action {
	out := &modifySet{}
	switch operation := parameters.At("operation"); operation.Text() {
	case "", "merge":
	case "prune":
		out.Prune = true
	default:
		operation.Fail("unrecognized operation for modifyset: %s", operation.Text())
	}
	values := parameters.At("values").Fields()
	fromList := values.At("fromList")
	values.Done()
	items := fromList.List()
	out.Values = make([]any, len(items))
	for i, item := range items {
		out.Values[i] = item.Value
	}
	if len(out.Values) == 0 {
		fromList.Lint("it names no values, so the mutator changes nothing")
	}
	return out
}

func (m *mutator) decodeAssignImage(parameters *policydecode.Fields) action {
	parts := imageReference{
		Domain: parameters.At("assignDomain").Text(), Path: parameters.At("assignPath").Text(),
		Tag: parameters.At("assignTag").Text(),
	}
	if err := parts.Validate(); err != nil {
		parameters.Fail("%s has invalid parameters: %w", m.messagePrefix(), err)
	}
	return &assignImage{Parts: parts}
}
