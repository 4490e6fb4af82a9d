package kyverno

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// check is a reason for which Kyverno 1.19 does not install a policy that can be evaluated here, in its words where they say
// enough (pkg/validation/policy, pkg/policy/mutate, and Validate of api/kyverno/v1). docs/maintaining.md lists all that it makes.
type check struct {
	place, reason string                           // the place is a path below what is checked
	refused       func(c *checked, value any) bool // the value is what stands at the place; nil for nothing
}

// checked is what checks see of a policy and of a rule, as they are written.
type checked struct {
	namespaced, background bool
	variables              bool // the policy has some
	checkKind              func(engine.KindName) error
	spec, rule, mutate     map[string]any
	part                   map[string]any // what is checked: the document, the rule, a block, a filter, an entry of context, a condition
}

//nolint:gochecknoglobals // immutable tables
var (
	policyChecks = []check{
		{"metadata.name", "a name has at most 63 characters", long},
		{"metadata.annotations", "the autogen annotation does not support all anymore: leave it out", func(_ *checked, v any) bool { return mapping(v)[autogenAnnotation] == "all" }},
		{"spec.admission", "disabling admission processing is only allowed with validation policies", func(_ *checked, v any) bool { return v == false }},
		{"spec.generateExistingOnPolicyUpdate", "the field is deprecated and has no effect on mutation: leave it out", present},
		{"spec.webhookTimeoutSeconds", "webhookConfiguration.timeoutSeconds is there, too: leave this out", beside("timeoutSeconds")},
		{"spec.failurePolicy", "webhookConfiguration.failurePolicy is there, too: leave this out", beside("failurePolicy")},
		{"spec.webhookTimeoutSeconds", "the timeout value must be between 1 and 30 seconds", noTimeout},
		{"spec.webhookConfiguration.timeoutSeconds", "the timeout value must be between 1 and 30 seconds", noTimeout},
		{"spec.validationFailureActionOverrides", "it is supported with ClusterPolicy only", func(c *checked, v any) bool { return c.namespaced && len(sequence(v)) > 0 }},
	}
	ruleChecks = []check{
		{"name", "a name has at most 63 characters", long},
		{"name", "only one operation (mutate, validate, generate, verifyImages) is allowed per rule", func(c *checked, _ any) bool { return c.operations() > 1 }},
		{"imageExtractors", "imageExtractors can only be defined for verifyImages rules", func(c *checked, v any) bool { return v != nil && len(sequence(c.rule["verifyImages"])) == 0 }},
		{"mutate", "mutate.targets has to be specified when mutateExistingOnPolicyUpdate is set", func(c *checked, _ any) bool {
			own, of := c.mutate["mutateExistingOnPolicyUpdate"], c.spec["mutateExistingOnPolicyUpdate"]
			return len(c.mutate) > 0 && (own == true || of == true) && len(sequence(c.mutate["targets"])) == 0
		}},
		{"mutate.foreach", "only one of foreach, patchStrategicMerge, or patchesJson6902 is allowed", func(c *checked, v any) bool {
			return len(sequence(v)) > 0 && (c.mutate["patchStrategicMerge"] != nil || text(c.mutate["patchesJson6902"]) != "")
		}},
		{"mutate.foreach", "a nested foreach cannot contain other declarations, such as context and preconditions: move preconditions into its entries", crowded},
		{"mutate.patchesJson6902", "variables are forbidden in the path of a JSON patch outside of foreach", func(_ *checked, v any) bool {
			return anyOf(operationsIn(v), func(operation map[string]any) bool {
				return len(variables.Inspect(text(operation["path"])).Variables) > 0
			})
		}},
		{"mutate.patchesJson6902", "its path must begin with a forward slash, which a patch that is one variable does not show", func(_ *checked, v any) bool {
			return strings.HasPrefix(strings.TrimSpace(text(v)), "{{")
		}},
		{"mutate", "labels and annotations support only string values, in quotes; a JSON patch removes one, null does not", oddLabels},
		{"exclude", "the rule is matching an empty set, since Kyverno compares exclude.any with match.any only", flatMatch},
	}
	blockChecks = []check{
		{"resources", "any and all cannot be specified together with resources", func(c *checked, v any) bool {
			return len(mapping(v)) > 0 && len(sequence(c.part["any"]))+len(sequence(c.part["all"])) > 0
		}},
	}
	filterChecks = []check{
		{"resources.names", "name and names can not be specified together", func(c *checked, v any) bool {
			return len(sequence(v)) > 0 && text(mapping(c.part["resources"])["name"]) != ""
		}},
		{"resources.selector", "the requirements are not specified in selector", func(_ *checked, v any) bool {
			return v != nil && len(mapping(mapping(v)["matchLabels"]))+len(sequence(mapping(v)["matchExpressions"])) == 0
		}},
		{"resources.namespaces", "filtering namespaces is not allowed in namespaced policies", func(c *checked, v any) bool { return c.namespaced && len(sequence(v)) > 0 }},
		{"resources.kinds", "a cluster-wide resource is not allowed in a namespaced policy", func(c *checked, v any) bool {
			return c.namespaced && c.checkKind != nil && slices.ContainsFunc(sequence(v), c.clusterScoped)
		}},
		{"roles", "a role is expected to be in namespace:name format", func(_ *checked, v any) bool {
			return slices.ContainsFunc(sequence(v), func(role any) bool { return strings.Count(text(role), ":") != 1 })
		}},
		{"subjects", "a subject needs a name, and a ServiceAccount a namespace", func(_ *checked, v any) bool {
			return anyOf(v, func(s map[string]any) bool {
				return text(s["name"]) == "" || s["kind"] == "ServiceAccount" && text(s["namespace"]) == ""
			})
		}},
		{"roles", needsRequest, onlyAtRequests},
		{"clusterRoles", needsRequest, onlyAtRequests},
		{"subjects", needsRequest, onlyAtRequests},
		{"resources.kinds", `"*" is not for background mode: set spec.background: false`, func(c *checked, v any) bool { return c.background && c.every(v) }},
		{"resources.kinds", `"*" can not deal with more than one kind`, func(c *checked, v any) bool { return c.every(v) && len(sequence(v)) > 1 }},
		{"resources.kinds", `a rule for "*" can only deal with the metadata field`, func(c *checked, v any) bool { return c.every(v) && c.beyondMetadata() }},
	}
	// Those of the context and the preconditions of the rule only: Kyverno does not look at those of targets and of foreach.
	entryChecks = []check{
		{"globalReference", "a globalReference is not allowed in namespaced policies", func(c *checked, v any) bool { return c.namespaced && v != nil }},
		{"name", "the name is that of a pre-defined variable: choose another one", func(_ *checked, v any) bool {
			name, _, _ := strings.Cut(text(v), ".")
			return slices.Contains([]string{"images", "request", "serviceAccountName", "serviceAccountNamespace", "element", "elementIndex"}, name)
		}},
		{"configMap", "a namespace is required for a configMap context entry", func(_ *checked, v any) bool { return v != nil && text(mapping(v)["namespace"]) == "" }},
		{"variable", "a variable must define a default value only when a jmesPath expression is defined", func(_ *checked, v any) bool {
			return mapping(v)["default"] != nil && text(mapping(v)["jmesPath"]) == ""
		}},
	}
	conditionChecks = []check{
		{"operator", "a condition needs a key, a value and an operator", func(c *checked, v any) bool { return v != nil && (c.part["key"] == nil || c.part["value"] == nil) }},
		{"value", "only CREATE, UPDATE, DELETE and CONNECT are operations", func(c *checked, v any) bool {
			return strings.ReplaceAll(text(c.part["key"]), " ", "") == "{{request.operation}}" && !operations(v)
		}},
	}
)

const needsRequest = "uses request user information, which is only there at requests: set spec.background and mutateExistingOnPolicyUpdate to false"

func present(_ *checked, v any) bool { return v != nil }

func long(_ *checked, v any) bool { return len(text(v)) > maxRuleName }

func noTimeout(_ *checked, v any) bool {
	seconds, err := strconv.Atoi(jsonText(v))
	return err == nil && (seconds < 1 || seconds > 30)
}

// beside refuses a field of old policies beside the one that there is now.
func beside(now string) func(*checked, any) bool {
	return func(c *checked, v any) bool { return v != nil && mapping(c.spec["webhookConfiguration"])[now] != nil }
}

// anyOf reports whether something holds of a mapping in a list.
func anyOf(list any, holds func(map[string]any) bool) bool {
	return slices.ContainsFunc(sequence(list), func(item any) bool { return holds(mapping(item)) })
}

// operations counts what the rule does.
func (c *checked) operations() int {
	n := min(len(sequence(c.rule["verifyImages"])), 1)
	for _, key := range []string{"mutate", "validate", "generate"} {
		n += min(len(mapping(c.rule[key])), 1)
	}
	return n
}

// crowded reports whether an entry of a foreach has more than another foreach.
func crowded(c *checked, v any) bool {
	return anyOf(v, func(entry map[string]any) bool {
		return len(sequence(entry["foreach"])) > 0 && (entry["context"] != nil || entry["preconditions"] != nil || crowded(c, entry["foreach"]))
	})
}

// oddLabels reports whether a label or annotation in a strategic merge, in that of the first entry of a foreach, is no string.
// Of metadata and spec, Kyverno looks at one, by chance: both have to be wrong.
func oddLabels(c *checked, _ any) bool {
	merge := mapping(c.mutate["patchStrategicMerge"])
	for _, entry := range sequence(c.mutate["foreach"]) {
		if merge = mapping(mapping(entry)["patchStrategicMerge"]); merge != nil {
			break
		}
	}
	odd := func(metadata any) bool {
		for _, key := range []string{"annotations", "labels"} {
			for _, value := range mapping(mapping(metadata)[key]) {
				if _, isText := value.(string); !isText {
					return true
				}
			}
		}
		return false
	}
	own, spec := mapping(merge["metadata"]), merge["spec"]
	return (own != nil || spec != nil) && (own == nil || odd(own)) && (spec == nil || odd(mapping(mapping(spec)["template"])["metadata"]))
}

// flatMatch reports whether the rule has the flat form in match and any in exclude, which Kyverno takes for a
// conflict unless match has what it asks of both (ValidateMatchExcludeConflict).
func flatMatch(c *checked, v any) bool {
	match, exclude := mapping(c.rule["match"]), mapping(v)
	flat := mapping(match["resources"])
	return len(sequence(match["any"]))+len(sequence(match["all"]))+len(sequence(exclude["all"])) == 0 &&
		len(sequence(exclude["any"])) > 0 && len(mapping(exclude["resources"])) == 0 && len(flat) > 0 &&
		flat["selector"] == nil && flat["namespaceSelector"] == nil && flat["annotations"] == nil
}

// onlyAtRequests reports whether users count in a rule that may run without a request.
func onlyAtRequests(c *checked, v any) bool {
	onUpdate := c.mutate["mutateExistingOnPolicyUpdate"]
	if onUpdate == nil && c.mutate != nil {
		onUpdate = c.spec["mutateExistingOnPolicyUpdate"]
	}
	return len(sequence(v)) > 0 && (c.background || c.variables && onUpdate == true)
}

// every reports whether kinds of a rule are all kinds.
func (c *checked) every(kinds any) bool {
	return c.rule != nil && slices.Contains(sequence(kinds), any("*"))
}

// clusterScoped reports whether a kind, as a rule names it, is one of objects in no namespace.
func (c *checked) clusterScoped(kind any) bool {
	k, err := selector.ParseKind(text(kind))
	name := engine.KindName{Groups: []string{k.Group}, Versions: []string{k.Version}, Kind: k.Kind, Namespaced: true}
	return err == nil && k.Subresource == "" && !selector.HasWildcard(k.Kind) && errors.Is(c.checkKind(name), engine.ErrClusterScoped)
}

// beyondMetadata reports whether a patch of the rule names other fields; Kyverno reads a JSON patch for this as JSON only.
func (c *checked) beyondMetadata() bool {
	for key := range mapping(c.mutate["patchStrategicMerge"]) {
		if key != "metadata" {
			return true
		}
	}
	patch := text(c.mutate["patchesJson6902"])
	return strings.HasPrefix(strings.TrimSpace(patch), "[") &&
		anyOf(operationsIn(patch), func(operation map[string]any) bool { return !strings.HasPrefix(text(operation["path"]), "/metadata") })
}

// operations reports whether a value names operations, or is a variable.
func operations(v any) bool {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
		if strings.HasPrefix(text(v), "{{") && strings.HasSuffix(text(v), "}}") {
			return true
		}
	}
	return !slices.ContainsFunc(list, func(one any) bool { return !slices.Contains([]any{"CREATE", "UPDATE", "DELETE", "CONNECT"}, one) })
}

// check reports what Kyverno refuses in a part of a policy.
func (c *checked) check(n policydecode.Node, checks []check) {
	c.part = mapping(n.Value)
	for _, k := range checks {
		value, _, _ := unstructured.NestedFieldNoCopy(c.part, strings.Split(k.place, ".")...)
		if k.refused(c, value) {
			at := n
			at.Path = strings.TrimPrefix(n.Path+"."+k.place, ".")
			at.Refuse(kyvernoName, "%s", k.reason)
		}
	}
}

// checkRule reports what Kyverno refuses in a rule, whatever the rule does.
func (c *checked) checkRule(n policydecode.Node) {
	c.rule = mapping(n.Value)
	c.mutate = mapping(c.rule["mutate"])
	c.check(n, ruleChecks)
	match := child(n, "match")
	for _, block := range []policydecode.Node{match, child(n, "exclude")} {
		c.check(block, blockChecks)
		c.checkFilters(block)
	}
	for _, entry := range items(child(n, "context")) {
		c.check(entry, entryChecks)
	}
	conditions := child(n, "preconditions")
	for _, condition := range slices.Concat(items(conditions), items(child(conditions, "any")), items(child(conditions, "all"))) {
		c.check(condition, conditionChecks)
	}
	for _, filter := range inForce(match) {
		resources := mapping(mapping(filter.Value)["resources"])
		switch {
		case len(resources) == 0:
			filter.Empty(`match cannot be empty: without resources it matches nothing; "*" is the kind that stands for all; Kyverno refuses this policy`)
		case len(sequence(resources["kinds"])) == 0:
			filter.Refuse(kyvernoName, "the attribute kinds is mandatory in resources")
		}
	}
}

// checkFilters reports what Kyverno refuses in the filters of a block.
func (c *checked) checkFilters(block policydecode.Node) {
	for _, filter := range slices.Concat(items(child(block, "any")), items(child(block, "all")), []policydecode.Node{block}) {
		c.check(filter, filterChecks)
	}
}

// inForce returns the filters of a match block that count.
func inForce(block policydecode.Node) []policydecode.Node {
	for _, key := range []string{"any", "all"} {
		if filters := items(child(block, key)); len(filters) > 0 {
			return filters
		}
	}
	if mapping(block.Value) == nil {
		return nil
	}
	return []policydecode.Node{block}
}

// child is the place of a field, whatever stands there.
func child(n policydecode.Node, key string) policydecode.Node {
	n.Path, n.Value = n.Path+"."+key, mapping(n.Value)[key]
	return n
}

// items are the places of the items of a list, if it is one.
func items(n policydecode.Node) []policydecode.Node {
	if sequence(n.Value) == nil {
		return nil
	}
	return n.List()
}
