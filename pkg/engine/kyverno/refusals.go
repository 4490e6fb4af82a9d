package kyverno

import (
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// check is a reason why Kyverno 1.19 rejects a policy that can be evaluated here, in its words where they
// suffice (pkg/validation/policy, pkg/policy/mutate, and Validate of api/kyverno/v1).
// testdata/compile/refused.txtar has a policy for each, and lists the missing checks.
type check struct {
	place string // a path below the checked part
	// evaluated on checked.see and value, the value at the place; an error is not a refusal
	refused *jmespath.Expression
	reason  string
}

// checks compiles rows of place, refused and reason.
func checks(rows ...[3]string) (out []check) {
	for _, row := range rows {
		refused, err := jmespath.Compile(row[1])
		if err != nil {
			panic(err)
		}
		out = append(out, check{row[0], refused, row[2]})
	}
	return out
}

// checked is the written policy and rule.
type checked struct {
	namespaced, background bool
	variables              bool // the policy has variables
	checkKind              func(engine.KindName) error
	spec, rule, mutate     map[string]any
	operations             any // of the rule's JSON patch
}

// see returns the data for checks of a part: the document, rule, block, filter, context entry or condition.
func (c *checked) see(part map[string]any) map[string]any {
	kinds := sequence(mapping(part["resources"])["kinds"])
	return map[string]any{
		"namespaced": c.namespaced, "background": c.background, "variables": c.variables, "spec": c.spec,
		"rule": c.rule, "mutate": c.mutate, "part": part,
		"operations": c.operations, "oddLabels": c.oddLabels(),
		"every":         c.rule != nil && slices.Contains(kinds, any("*")),
		"clusterScoped": c.namespaced && c.checkKind != nil && slices.ContainsFunc(kinds, c.clusterScoped),
	}
}

const (
	needsRequest = "uses request user information, which is only there at requests: set spec.background and mutateExistingOnPolicyUpdate to false"
	// atRequests holds if users count in a rule that may run without a request.
	atRequests = "value && (background || variables && not_null(mutate.mutateExistingOnPolicyUpdate, mutate && spec.mutateExistingOnPolicyUpdate) == `true`)"
)

//nolint:gochecknoglobals // immutable tables
var (
	policyChecks = checks([][3]string{
		{"metadata.name", "length(value) > `63`", "a name has at most 63 characters"},
		{"metadata.annotations", `value."` + autogenAnnotation + `" == 'all'`, "the autogen annotation does not support all anymore: leave it out"},
		{"spec.admission", "value == `false`", "disabling admission processing is only allowed with validation policies"},
		{"spec.generateExistingOnPolicyUpdate", "value != `null`", "the field is deprecated and has no effect on mutation: leave it out"},
		{"spec.webhookTimeoutSeconds", "value != `null` && spec.webhookConfiguration.timeoutSeconds != `null`", "webhookConfiguration.timeoutSeconds is there, too: leave this out"},
		{"spec.failurePolicy", "value != `null` && spec.webhookConfiguration.failurePolicy != `null`", "webhookConfiguration.failurePolicy is there, too: leave this out"},
		{"spec.webhookTimeoutSeconds", "value < `1` || value > `30`", "the timeout value must be between 1 and 30 seconds"},
		{"spec.webhookConfiguration.timeoutSeconds", "value < `1` || value > `30`", "the timeout value must be between 1 and 30 seconds"},
		{"spec.validationFailureActionOverrides", "namespaced && value", "it is supported with ClusterPolicy only"},
	}...)
	ruleChecks = checks([][3]string{
		{"name", "length(value) > `63`", "a name has at most 63 characters"},
		{"name", "length([rule.verifyImages, rule.mutate, rule.validate, rule.generate][?@]) > `1`", "only one operation (mutate, validate, generate, verifyImages) is allowed per rule"},
		{"imageExtractors", "value != `null` && !(rule.verifyImages)", "imageExtractors can only be defined for verifyImages rules"},
		{
			"mutate", "mutate && !(mutate.targets) && (mutate.mutateExistingOnPolicyUpdate == `true` || spec.mutateExistingOnPolicyUpdate == `true`)",
			"mutate.targets has to be specified when mutateExistingOnPolicyUpdate is set",
		},
		{"mutate.foreach", "value && (mutate.patchStrategicMerge != `null` || mutate.patchesJson6902)", "only one of foreach, patchStrategicMerge, or patchesJson6902 is allowed"},
		{
			"mutate.foreach", "[value, value[].foreach[], value[].foreach[].foreach[], value[].foreach[].foreach[].foreach[]][] | [?foreach && (context != `null` || preconditions != `null`)]",
			"a nested foreach cannot contain other declarations, such as context and preconditions: move preconditions into its entries",
		},
		{"mutate.patchesJson6902", `operations[?regex_match('\{\{.*\}\}', path)]`, "variables are forbidden in the path of a JSON patch outside of foreach"},
		{"mutate.patchesJson6902", `regex_match('^\s*\{\{', value)`, "its path must begin with a forward slash, which a patch that is one variable does not show"},
		{"mutate", "oddLabels", "labels and annotations support only string values, in quotes; a JSON patch removes one, null does not"},
		// the flat form in match and any in exclude, unless match has the fields of ValidateMatchExcludeConflict in
		// both
		{
			"exclude", `!(rule.match.any || rule.match.all || value.all || value.resources) && value.any && rule.match.resources &&
				!(rule.match.resources.selector || rule.match.resources.namespaceSelector ||
					rule.match.resources.annotations)`,
			"the rule is matching an empty set, since Kyverno compares exclude.any with match.any only",
		},
	}...)
	blockChecks  = checks([3]string{"resources", "value && (part.any || part.all)", "any and all cannot be specified together with resources"})
	filterChecks = checks([][3]string{
		{"resources.names", "value && part.resources.name", "name and names can not be specified together"},
		{"resources.selector", "value != `null` && !(value.matchLabels || value.matchExpressions)", "the requirements are not specified in selector"},
		{"resources.namespaces", "namespaced && value", "filtering namespaces is not allowed in namespaced policies"},
		{"resources.kinds", "clusterScoped", "a cluster-wide resource is not allowed in a namespaced policy"},
		{"roles", "value[?!regex_match('^[^:]*:[^:]*$', @)]", "a role is expected to be in namespace:name format"},
		{"subjects", "value[?!name || kind == 'ServiceAccount' && !namespace]", "a subject needs a name, and a ServiceAccount a namespace"},
		{"roles", atRequests, needsRequest},
		{"clusterRoles", atRequests, needsRequest},
		{"subjects", atRequests, needsRequest},
		{"resources.kinds", "every && background", `"*" is not for background mode: set spec.background: false`},
		{"resources.kinds", "every && length(value) > `1`", `"*" can not deal with more than one kind`},
		{ // here, Kyverno reads a JSON patch only as JSON
			"resources.kinds", "every && (keys(mutate.patchStrategicMerge || `{}`)[?@ != 'metadata'] || " +
				`regex_match('^\s*\[', mutate.patchesJson6902 || '') && operations[?!starts_with(path, '/metadata')])`,
			`a rule for "*" can only deal with the metadata field`,
		},
	}...)
	// Only in the rule's context and preconditions: Kyverno does not check targets and foreach.
	entryChecks = checks([][3]string{
		{"globalReference", "namespaced && value != `null`", "a globalReference is not allowed in namespaced policies"},
		{
			"name", `regex_match('^(images|request|serviceAccountName|serviceAccountNamespace|element|elementIndex)(\.|$)', value)`,
			"the name is that of a pre-defined variable: choose another one",
		},
		{"configMap", "value != `null` && !(value.namespace)", "a namespace is required for a configMap context entry"},
		{"variable", "value.default != `null` && !(value.jmesPath)", "a variable must define a default value only when a jmesPath expression is defined"},
	}...)
	conditionChecks = checks([][3]string{
		{"operator", "value != `null` && (part.key == `null` || part.value == `null`)", "a condition needs a key, a value and an operator"},
		{
			"value", "replace_all(part.key, ' ', '') == '{{request.operation}}' && to_array(value)[?!contains(['CREATE', 'UPDATE', 'DELETE', 'CONNECT'], @)] && " +
				`!(type(value) == 'string' && regex_match('^\{\{.*\}\}$', value))`,
			"only CREATE, UPDATE, DELETE and CONNECT are operations",
		},
	}...)
)

// oddLabels reports whether a strategic merge, or the one in the first foreach entry, has a label or
// annotation that is not a string. Kyverno checks metadata or spec at random, so both have to be wrong.
func (c *checked) oddLabels() bool {
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
	return (own != nil || spec != nil) && (own == nil || odd(own)) &&
		(spec == nil || odd(mapping(mapping(spec)["template"])["metadata"]))
}

func (c *checked) clusterScoped(kind any) bool {
	k, err := selector.ParseKind(stringOrEmpty(kind))
	name := engine.KindName{
		Groups: []string{k.Group}, Versions: []string{k.Version}, Kind: k.Kind,
		Namespaced: true,
	}
	return err == nil && k.Subresource == "" && !selector.HasWildcard(k.Kind) &&
		errors.Is(c.checkKind(name), engine.ErrClusterScoped)
}

func (c *checked) check(n policydecode.Node, checks []check) {
	seen, in := c.see(mapping(n.Value)), jmespath.New(time.Time{}, 0, nil)
	for _, k := range checks {
		seen["value"], _, _ = unstructured.NestedFieldNoCopy(mapping(n.Value), strings.Split(k.place, ".")...)
		if refused, err := k.refused.Search(in, seen); err == nil && jmespath.Truthy(refused) {
			at := n
			at.Path = strings.TrimPrefix(n.Path+"."+k.place, ".")
			at.Refuse(kyvernoName, "%s", k.reason)
		}
	}
}

// checkRule reports Kyverno's refusals of a rule of any type.
func (c *checked) checkRule(n policydecode.Node) {
	c.rule = mapping(n.Value)
	c.mutate = mapping(c.rule["mutate"])
	c.operations = operationsIn(c.mutate["patchesJson6902"])
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
	for _, condition := range slices.Concat(items(conditions), items(child(conditions, "any")),
		items(child(conditions, "all"))) {
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

// checkFilters reports Kyverno's refusals of the filters of a block.
func (c *checked) checkFilters(block policydecode.Node) {
	for _, filter := range slices.Concat(items(child(block, "any")), items(child(block, "all")),
		[]policydecode.Node{block}) {
		c.check(filter, filterChecks)
	}
}

// inForce returns the effective filters of a match block.
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

// child returns the node of a field, whatever its value.
func child(n policydecode.Node, key string) policydecode.Node {
	n.Path, n.Value = n.Path+"."+key, mapping(n.Value)[key]
	return n
}

// items returns the nodes of a list's items; none for other values.
func items(n policydecode.Node) []policydecode.Node {
	if sequence(n.Value) == nil {
		return nil
	}
	return n.List()
}
