package gatekeeper

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// decodeMutator reads a mutator. Errors go to the report, in Gatekeeper's words if it has any; the mutator
// then has no action.
func decodeMutator(r *policydecode.Report, d engine.Document) *mutator {
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	gvk := d.Key.GroupVersionKind()
	spec := root.At("spec").Fields()
	m := &mutator{
		kind: gvk.Kind, name: d.Key.Name, id: gvk.Kind + "." + mutationsGroup + " /" + d.Key.Name,
		location: spec.At("location"),
	}
	checkVersion(root.At("apiVersion"), gvk.Kind, gvk.Version)
	m.checkName(root.At("metadata").Fields().At("name"))
	m.decodePath()
	m.criteria = decodeMatch(spec.At("match"))
	if m.criteria.Source == sourceGenerated {
		m.source = spec.At("match").Fields().At("source")
	}
	m.written.match = keyOf(spec.At("match").Value)
	spec.Elsewhere("below parameters", "assign", "assignDomain", "assignPath", "assignTag", "pathTests",
		"operation", "values")
	spec.Elsewhere("below match", "kinds", "namespaces", "excludedNamespaces", "labelSelector",
		"namespaceSelector")
	parameters := spec.At("parameters").Fields()
	parameters.Elsewhere("beside parameters", "location", "applyTo", "match")
	refuseDropped(parameters)
	if m.kind != kindAssignMetadata {
		m.criteria.ApplyTo = m.decodeApplyTo(spec.At("applyTo"))
		m.decodePathTests(parameters.At("pathTests"))
	}
	var act action
	switch m.kind {
	case kindAssign:
		act = m.decodeAssign(parameters)
	case kindAssignMetadata:
		act = m.decodeAssignMetadata(parameters)
	case kindModifySet:
		act = m.decodeModifySet(parameters)
	case kindAssignImage:
		act = m.decodeAssignImage(parameters)
	}
	parameters.Done()
	spec.Done()
	root.DoneObject()
	warnOfStatus(root.At("status").Fields())
	if len(r.Errs) == 0 {
		m.action = act
		m.lint()
	}
	return m
}

// checkVersion reports versions that Gatekeeper does not serve.
func checkVersion(n policydecode.Node, kind, version string) {
	switch {
	case !slices.Contains([]string{"v1alpha1", "v1beta1", "v1"}, version):
		n.Fail("%s/%s is no version of %s: use v1, v1beta1 or v1alpha1", mutationsGroup, version, kind)
	case kind == kindAssignImage && version != "v1alpha1":
		n.Lint("Gatekeeper serves AssignImage as v1alpha1 only: an API server refuses this version")
	}
}

const maxName = 63

func (m *mutator) checkName(n policydecode.Node) {
	if len(m.name) > maxName {
		n.Fail("maximum name length is %d characters", maxName)
	} else if problems := validation.IsDNS1123Subdomain(m.name); len(problems) > 0 {
		n.Lint("an API server refuses the name %q: %s", m.name, problems[0])
	}
}

// messagePrefix returns Gatekeeper's prefix for messages about a location.
func (m *mutator) messagePrefix() string {
	switch m.kind {
	case kindAssignImage:
		return "assignImage " + m.name
	case kindModifySet:
		return "modifyset " + m.name
	}
	return "assign " + m.name
}

func (m *mutator) decodePath() {
	n := m.location
	text := n.Text()
	path, err := parseLocation(text)
	if err != nil {
		n.Fail("%w%s", m.badLocation(text, err), quotesHint(text))
		return
	}
	m.path = path
	if m.kind == kindAssignMetadata {
		if !isMetadata(path) {
			n.Fail("invalid location for assignmetadata %s: %s%s", m.name, path, quotesHint(text))
		}
		return
	}
	last, isList := path.last().(listNode)
	switch {
	case len(path) == 0:
		n.Fail("empty path")
	case path[0] == fieldNode("metadata"):
		n.Fail("%s can't change metadata", m.messagePrefix())
	case changesKey(path):
		n.Fail("invalid path format: changing the item key is not allowed")
	case isList && m.kind == kindModifySet:
		n.Fail("final node in a modifyset location cannot be a keyed list")
	case isList && m.kind == kindAssignImage:
		n.Fail("%s cannot mutate list-type fields", m.messagePrefix())
	case isList && last.glob():
		n.Fail("can't append to a globbed list")
	}
}

// metadataKey matches a label or annotation key that lacks quotes, or is in brackets.
var metadataKey = regexp.MustCompile(`^(.*metadata\.(?:labels|annotations))(?:\.([^."']+[./][^"']+)|\[["']?([^"'\]]+)["']?\])$`)

func quotesHint(text string) string {
	switch found := metadataKey.FindStringSubmatch(text); {
	case found != nil:
		return fmt.Sprintf("; a key with a dot or a slash stands in quotes: %s.%q", found[1], found[2]+found[3])
	case strings.HasPrefix(text, "/"):
		steps := strings.Split(text[1:], "/")
		for i, step := range steps {
			if step = jsonpointer.Unescape(step); strings.ContainsAny(step, "./") {
				step = strconv.Quote(step)
			}
			steps[i] = step
		}
		return "; a location is written with dots: " + strings.Join(steps, ".")
	}
	return ""
}

func (m *mutator) badLocation(text string, err error) error {
	switch m.kind {
	case kindAssignMetadata:
		return fmt.Errorf("invalid location format for AssignMetadata %s: %s: %w", m.name, text, err)
	case kindAssignImage:
		return fmt.Errorf("invalid location format `%s` for assignImage %s: %w", text, m.name, err)
	}
	return fmt.Errorf("invalid location format `%s` for %s %s: %w", text, m.kind, m.name, err)
}

func isMetadata(p location) bool {
	const nodes = 3
	if len(p) != nodes || p[0] != fieldNode("metadata") {
		return false
	}
	_, isField := p[2].(fieldNode)
	return isField && (p[1] == fieldNode("labels") || p[1] == fieldNode("annotations"))
}

// changesKey reports whether a path ends in the key field of a list's element.
func changesKey(p location) bool {
	if len(p) < 2 {
		return false
	}
	list, isList := p[len(p)-2].(listNode)
	return isList && p.last() == fieldNode(list.Key)
}

// refuseDropped refuses conditions of old Gatekeeper versions that new ones silently ignore: without them, a
// mutation would reach far more objects than intended.
func refuseDropped(parameters *policydecode.Fields) {
	for _, f := range []struct{ name, until string }{{"assignIf", "3.7"}, {"ifIn", "3.4"}, {"ifNotIn", "3.4"}} {
		if n := parameters.At(f.name); n.Value != nil {
			n.Fail("removed in Gatekeeper %s, whose newer versions drop it in silence and mutate without the condition: use pathTests, or leave %s out", f.until, f.name)
		}
	}
}

func (m *mutator) decodePathTests(n policydecode.Node) {
	var tests []pathTest
	for _, item := range n.List() {
		f := item.Fields()
		subPath, condition := f.At("subPath"), f.At("condition")
		f.Done()
		path, err := parseLocation(subPath.Text())
		if err != nil {
			subPath.Fail("problem parsing sub path `%s` for %s %s: %w", subPath.Text(), m.kind, m.name, err)
			continue
		}
		test := pathTest{SubPath: path, Condition: existence(condition.Text())}
		switch test.Condition {
		case mustExist, mustNotExist:
		case never:
			if len(path) > 0 {
				condition.Lint("without a condition the test never holds, so that the mutator does nothing: use MustExist or MustNotExist")
			}
		default:
			condition.Fail("must be MustExist or MustNotExist, not %q", test.Condition)
			continue
		}
		tests = append(tests, test)
	}
	if len(m.path) == 0 {
		return // a syntax error has been reported
	}
	compiled, err := compileTests(m.path, tests)
	if err != nil {
		n.Fail("%w", err)
		return
	}
	if refusedForOrder(tests) {
		n.Lint("Gatekeeper refuses these tests for their order: write the test of the parent, which must exist, first")
	}
	m.tests, m.written.tests = compiled, len(tests) > 0
}

// warnOfStatus repeats, as warnings, the errors that a cluster's Gatekeeper reports for the mutator.
func warnOfStatus(status *policydecode.Fields) {
	if !status.Has("byPod") {
		return
	}
	byPod := status.At("byPod")
	pods, _ := byPod.Value.([]any)
	for _, pod := range pods {
		p, _ := pod.(map[string]any)
		if enforced, known := p["enforced"].(bool); !known || enforced {
			continue
		}
		reason := "it gives no reason"
		if list, _ := p["errors"].([]any); len(list) > 0 {
			first, _ := list[0].(map[string]any)
			reason = fmt.Sprint(first["message"])
		}
		byPod.Lint("the cluster's Gatekeeper does not enforce this mutator: %s", reason)
		return
	}
}
