package kyverno

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// check is a reason for which Kyverno 1.19 does not install a policy that can be evaluated here, in its words where
// they say enough (pkg/validation/policy and Validate of api/kyverno/v1). Testdata/compile/refused.txtar has a policy for each, and
// docs/maintaining.md says which of its checks are not made here.
type check[T any] struct {
	reason string
	// at returns the place below the value that is refused; empty if none is.
	at func(T) string
}

// at is a check's place where something holds.
func at[T any](place string, holds func(T) bool) func(T) string {
	return func(value T) string {
		if holds(value) {
			return place
		}
		return ""
	}
}

// refuse reports what Kyverno refuses in a value at a node.
func refuse[T any](n policydecode.Node, checks []check[T], value T) {
	for _, c := range checks {
		if place := c.at(value); place != "" {
			below := n
			below.Path = strings.TrimPrefix(n.Path+"."+place, ".")
			below.Refuse(kyvernoName, "%s", c.reason)
		}
	}
}

// checkedPolicy is what checks see of a policy.
type checkedPolicy struct {
	name        string
	namespaced  bool
	background  bool
	annotations map[string]string
	spec        map[string]any
	variables   bool // anywhere
}

// checkedRule is what they see of a rule, as it is written.
type checkedRule struct {
	*checkedPolicy
	rule, mutate map[string]any
}

// checkedFilter is what they see of an entry of any or all, or of a flat block, in match or exclude of a rule or an exception.
type checkedFilter struct {
	*checkedRule
	filter, resources map[string]any
}

const wildcardKind = "*"

//nolint:gochecknoglobals // immutable tables
var (
	policyChecks = []check[*checkedPolicy]{
		{"a name has at most 63 characters", at("metadata.name", func(p *checkedPolicy) bool { return len(p.name) > maxRuleName })},
		{"the autogen annotation does not support all anymore: leave it out", at("metadata.annotations", func(p *checkedPolicy) bool {
			return p.annotations[autogenAnnotation] == "all"
		})},
		{"disabling admission processing is only allowed with validation policies", at("spec.admission", func(p *checkedPolicy) bool {
			return p.spec["admission"] == false
		})},
		{"the field is deprecated and has no effect on mutation: leave it out", at("spec.generateExistingOnPolicyUpdate", func(p *checkedPolicy) bool {
			return p.spec["generateExistingOnPolicyUpdate"] != nil
		})},
		{"webhookConfiguration.timeoutSeconds is there, too: leave this out", at("spec.webhookTimeoutSeconds", func(p *checkedPolicy) bool {
			return p.spec["webhookTimeoutSeconds"] != nil && mapping(p.spec["webhookConfiguration"])["timeoutSeconds"] != nil
		})},
		{"webhookConfiguration.failurePolicy is there, too: leave this out", at("spec.failurePolicy", func(p *checkedPolicy) bool {
			return p.spec["failurePolicy"] != nil && mapping(p.spec["webhookConfiguration"])["failurePolicy"] != nil
		})},
		{"the timeout value must be between 1 and 30 seconds", at("spec.webhookTimeoutSeconds", func(p *checkedPolicy) bool {
			return wrongTimeout(p.spec["webhookTimeoutSeconds"])
		})},
		{"the timeout value must be between 1 and 30 seconds", at("spec.webhookConfiguration.timeoutSeconds", func(p *checkedPolicy) bool {
			return wrongTimeout(mapping(p.spec["webhookConfiguration"])["timeoutSeconds"])
		})},
		{"it is supported with ClusterPolicy only", at("spec.validationFailureActionOverrides", func(p *checkedPolicy) bool {
			return p.namespaced && len(sequence(p.spec["validationFailureActionOverrides"])) > 0
		})},
	}

	ruleChecks = []check[*checkedRule]{
		{"a name has at most 63 characters", at("name", func(r *checkedRule) bool { return len(text(r.rule["name"])) > maxRuleName })},
		{"only one operation (mutate, validate, generate, verifyImages) is allowed per rule", at("name", func(r *checkedRule) bool { return r.operations() > 1 })},
		{"imageExtractors can only be defined for verifyImages rules", at("imageExtractors", func(r *checkedRule) bool {
			return r.rule["imageExtractors"] != nil && len(sequence(r.rule["verifyImages"])) == 0
		})},
		{"mutate.targets has to be specified when mutateExistingOnPolicyUpdate is set", at("mutate", func(r *checkedRule) bool {
			return r.onPolicyUpdate(true) && len(sequence(r.mutate["targets"])) == 0
		})},
		{"only one of foreach, patchStrategicMerge, or patchesJson6902 is allowed", at("mutate.foreach", func(r *checkedRule) bool {
			return len(sequence(r.mutate["foreach"])) > 0 && (r.mutate["patchStrategicMerge"] != nil || text(r.mutate["patchesJson6902"]) != "")
		})},
		{"a nested foreach cannot contain other declarations, such as context and preconditions: move them into its entries", (*checkedRule).crowdedForEach},
		{"variables are forbidden in the path of a JSON patch outside of foreach", (*checkedRule).variablePath},
		{"labels and annotations support only string values, in quotes; a JSON patch removes one, null does not", (*checkedRule).oddLabel},
		{"any and all cannot be specified together with resources", at("match.resources", func(r *checkedRule) bool { return mixed(r.rule["match"]) })},
		{"any and all cannot be specified together with resources", at("exclude.resources", func(r *checkedRule) bool { return mixed(r.rule["exclude"]) })},
		{"the rule is matching an empty set, since Kyverno compares exclude.any with match.any only", at("exclude", (*checkedRule).flatMatch)},
		{"a globalReference is not allowed in namespaced policies", (*checkedRule).globalReference},
		{"the name is that of a pre-defined variable: choose another one", (*checkedRule).reservedName},
		{"a namespace is required for a configMap context entry", (*checkedRule).configMapWithout},
		{"a variable must define a default value only when a jmesPath expression is defined", (*checkedRule).defaultWithout},
		{"a condition needs a key, a value and an operator", (*checkedRule).partialCondition},
		{"only CREATE, UPDATE, DELETE and CONNECT are operations", (*checkedRule).oddOperation},
	}

	filterChecks = []check[*checkedFilter]{
		{"name and names can not be specified together", at("resources.names", func(f *checkedFilter) bool {
			return text(f.resources["name"]) != "" && len(sequence(f.resources["names"])) > 0
		})},
		{"the requirements are not specified in selector", at("resources.selector", func(f *checkedFilter) bool {
			s := mapping(f.resources["selector"])
			return s != nil && len(mapping(s["matchLabels"]))+len(sequence(s["matchExpressions"])) == 0
		})},
		{"filtering namespaces is not allowed in namespaced policies", at("resources.namespaces", func(f *checkedFilter) bool {
			return f.namespaced && len(sequence(f.resources["namespaces"])) > 0
		})},
		{"a role is expected to be in namespace:name format", at("roles", func(f *checkedFilter) bool {
			return slices.ContainsFunc(sequence(f.filter["roles"]), func(role any) bool { return strings.Count(text(role), ":") != 1 })
		})},
		{"a subject needs a name, and a ServiceAccount a namespace", at("subjects", func(f *checkedFilter) bool {
			return slices.ContainsFunc(sequence(f.filter["subjects"]), func(subject any) bool {
				s := mapping(subject)
				return text(s["name"]) == "" || s["kind"] == "ServiceAccount" && text(s["namespace"]) == ""
			})
		})},
		{"uses request user information, which is only there at requests: set spec.background and mutateExistingOnPolicyUpdate to false", (*checkedFilter).user},
		{`"*" is not for background mode: set spec.background: false`, at("resources.kinds", func(f *checkedFilter) bool { return f.background && f.every() })},
		{`"*" can not deal with more than one kind`, at("resources.kinds", func(f *checkedFilter) bool {
			return f.every() && len(sequence(f.resources["kinds"])) > 1
		})},
		{`a rule for "*" can only deal with the metadata field`, at("resources.kinds", func(f *checkedFilter) bool {
			return f.every() && f.beyondMetadata()
		})},
	}
)

func wrongTimeout(value any) bool {
	seconds, known := value.(float64)
	if whole, isInt := value.(int64); isInt {
		seconds, known = float64(whole), true
	}
	return known && (seconds < 1 || seconds > 30)
}

// mixed reports whether a block has both lists of filters and the flat form.
func mixed(block any) bool {
	b := mapping(block)
	return len(sequence(b["any"]))+len(sequence(b["all"])) > 0 && len(mapping(b["resources"])) > 0
}

// operations counts what a rule does.
func (r *checkedRule) operations() int {
	n := min(len(sequence(r.rule["verifyImages"])), 1)
	for _, key := range []string{"mutate", "validate", "generate"} {
		n += min(len(mapping(r.rule[key])), 1)
	}
	return n
}

// onPolicyUpdate reports whether the rule is to run when the policy is installed. Kyverno asks the rule and the policy in two ways.
func (r *checkedRule) onPolicyUpdate(either bool) bool {
	own, of := r.mutate["mutateExistingOnPolicyUpdate"], r.spec["mutateExistingOnPolicyUpdate"] == true
	return len(r.mutate) > 0 && (own == true || of && (either || own == nil))
}

// crowdedForEach finds an entry of a foreach that has another one and more than that (pkg/policy/mutate/validate.go).
func (r *checkedRule) crowdedForEach() string {
	var find func(list any, path string) string
	find = func(list any, path string) string {
		for i, entry := range sequence(list) {
			e, place := mapping(entry), path+"["+strconv.Itoa(i)+"]"
			if len(sequence(e["foreach"])) == 0 {
				continue
			}
			for _, key := range []string{"context", "preconditions"} {
				if e[key] != nil {
					return place + "." + key
				}
			}
			return find(e["foreach"], place+".foreach")
		}
		return ""
	}
	return find(r.mutate["foreach"], "mutate.foreach")
}

func (r *checkedRule) variablePath() string {
	for i, operation := range sequence(operationsIn(r.mutate["patchesJson6902"])) {
		if found := variables.Inspect(text(mapping(operation)["path"])); len(found.Variables) > 0 {
			return "mutate.patchesJson6902[" + strconv.Itoa(i) + "].path"
		}
	}
	return ""
}

// oddLabel finds a label or annotation in a strategic merge, of a foreach in the first one, that is no string.
func (r *checkedRule) oddLabel() string {
	merge, place := mapping(r.mutate["patchStrategicMerge"]), "mutate.patchStrategicMerge"
	for i, entry := range sequence(r.mutate["foreach"]) {
		if merge = mapping(mapping(entry)["patchStrategicMerge"]); merge != nil {
			place = "mutate.foreach[" + strconv.Itoa(i) + "].patchStrategicMerge"
			break
		}
	}
	odd := func(metadata any, place string) string {
		for _, key := range []string{"annotations", "labels"} {
			values := mapping(mapping(metadata)[key])
			for _, name := range sortedKeys(values) {
				if _, isText := values[name].(string); !isText {
					return place + key + "." + name
				}
			}
		}
		return ""
	}
	own := odd(merge["metadata"], place+".metadata.")
	below := odd(mapping(mapping(merge["spec"])["template"])["metadata"], place+".spec.template.metadata.")
	// Of metadata and spec, Kyverno looks at one, by chance.
	if merge["spec"] != nil && (below == "" || mapping(merge["metadata"]) != nil && own == "") {
		return ""
	}
	return cmp.Or(own, below)
}

// flatMatch reports whether the rule has the flat form in match and any in exclude, which Kyverno takes for a
// conflict unless the match block has what it asks both for (ValidateMatchExcludeConflict).
func (r *checkedRule) flatMatch() bool {
	match, exclude := mapping(r.rule["match"]), mapping(r.rule["exclude"])
	flat := mapping(match["resources"])
	return len(sequence(match["any"]))+len(sequence(match["all"]))+len(sequence(exclude["all"])) == 0 &&
		len(sequence(exclude["any"])) > 0 && len(mapping(exclude["resources"])) == 0 && len(flat) > 0 &&
		flat["selector"] == nil && flat["namespaceSelector"] == nil && flat["annotations"] == nil
}

// entry returns the place below the first entry of the context that holds; Kyverno does not look at those of targets and of foreach.
func (r *checkedRule) entry(field string, holds func(entry map[string]any) bool) string {
	for i, entry := range sequence(r.rule["context"]) {
		if holds(mapping(entry)) {
			return "context[" + strconv.Itoa(i) + "]." + field
		}
	}
	return ""
}

func (r *checkedRule) globalReference() string {
	return r.entry("globalReference", func(entry map[string]any) bool { return r.namespaced && entry["globalReference"] != nil })
}

func (r *checkedRule) reservedName() string {
	return r.entry("name", func(entry map[string]any) bool {
		name, _, _ := strings.Cut(text(entry["name"]), ".")
		return slices.Contains([]string{"images", "request", "serviceAccountName", "serviceAccountNamespace", "element", "elementIndex"}, name)
	})
}

func (r *checkedRule) configMapWithout() string {
	return r.entry("configMap", func(entry map[string]any) bool {
		reference := mapping(entry["configMap"])
		return reference != nil && text(reference["namespace"]) == ""
	})
}

func (r *checkedRule) defaultWithout() string {
	return r.entry("variable", func(entry map[string]any) bool {
		variable := mapping(entry["variable"])
		return variable["default"] != nil && text(variable["jmesPath"]) == ""
	})
}

// condition returns the place of the first precondition that holds.
func (r *checkedRule) condition(holds func(condition map[string]any) bool) string {
	find := func(list any, path string) string {
		for i, one := range sequence(list) {
			if c := mapping(one); c != nil && holds(c) {
				return path + "[" + strconv.Itoa(i) + "]"
			}
		}
		return ""
	}
	lists := mapping(r.rule["preconditions"])
	for _, place := range []string{
		find(r.rule["preconditions"], "preconditions"), find(lists["any"], "preconditions.any"), find(lists["all"], "preconditions.all"),
	} {
		if place != "" {
			return place
		}
	}
	return ""
}

func (r *checkedRule) partialCondition() string {
	return r.condition(func(c map[string]any) bool { return c["operator"] != nil && (c["key"] == nil || c["value"] == nil) })
}

func (r *checkedRule) oddOperation() string {
	return r.condition(func(c map[string]any) bool {
		if strings.ReplaceAll(text(c["key"]), " ", "") != "{{request.operation}}" || c["value"] == nil {
			return false
		}
		values, isList := c["value"].([]any)
		if value := text(c["value"]); !isList && strings.HasPrefix(value, "{{") && strings.HasSuffix(value, "}}") {
			return false
		} else if !isList {
			values = []any{c["value"]}
		}
		return slices.ContainsFunc(values, func(value any) bool {
			return !slices.Contains([]any{"CREATE", "UPDATE", "DELETE", "CONNECT"}, value)
		})
	})
}

// user finds what asks who makes a request, which a rule cannot know that is not only run at requests.
func (f *checkedFilter) user() string {
	if !f.background && !(f.variables && f.onPolicyUpdate(false)) {
		return ""
	}
	for _, key := range []string{"roles", "clusterRoles", "subjects"} {
		if len(sequence(f.filter[key])) > 0 {
			return key
		}
	}
	return ""
}

// every reports whether a filter of a rule is for all kinds.
func (f *checkedFilter) every() bool {
	return f.rule != nil && slices.Contains(sequence(f.resources["kinds"]), any(wildcardKind))
}

// beyondMetadata reports whether a patch of the rule names other fields; Kyverno reads a JSON patch for this as JSON only.
func (r *checkedRule) beyondMetadata() bool {
	for key := range mapping(r.mutate["patchStrategicMerge"]) {
		if key != "metadata" {
			return true
		}
	}
	patch := text(r.mutate["patchesJson6902"])
	return strings.HasPrefix(strings.TrimSpace(patch), "[") && slices.ContainsFunc(sequence(operationsIn(patch)), func(operation any) bool {
		return !strings.HasPrefix(text(mapping(operation)["path"]), "/metadata")
	})
}

// refuseRule reports what Kyverno refuses in a rule, whatever the rule does.
func refuseRule(n policydecode.Node, p *checkedPolicy) {
	r := &checkedRule{p, mapping(n.Value), mapping(mapping(n.Value)["mutate"])}
	refuse(n, ruleChecks, r)
	for _, key := range []string{"match", "exclude"} {
		refuseFilters(policydecode.Node{Report: n.Report, Rule: n.Rule, Path: n.Path + "." + key, Value: r.rule[key]}, r)
	}
	match := mapping(r.rule["match"])
	filters := filtersOf(policydecode.Node{Report: n.Report, Rule: n.Rule, Path: n.Path + ".match", Value: match})
	if len(filters) > 1 {
		filters = slices.DeleteFunc(filters, func(f policydecode.Node) bool { return strings.HasSuffix(f.Path, ".match") })
	}
	for _, filter := range filters {
		resources := mapping(mapping(filter.Value)["resources"])
		switch {
		case len(resources) == 0:
			filter.Empty("match cannot be empty: without resources it matches nothing; %q is the kind that stands for all; Kyverno refuses this policy", wildcardKind)
		case len(sequence(resources["kinds"])) == 0:
			filter.Refuse(kyvernoName, "the attribute kinds is mandatory in resources")
		}
	}
}

// refuseFilters reports what Kyverno refuses in the filters of a block.
func refuseFilters(block policydecode.Node, r *checkedRule) {
	for _, n := range filtersOf(block) {
		filter := mapping(n.Value)
		refuse(n, filterChecks, &checkedFilter{r, filter, mapping(filter["resources"])})
	}
}

// filtersOf returns the entries of any and all, and the flat form, which is the block itself.
func filtersOf(block policydecode.Node) []policydecode.Node {
	fields := mapping(block.Value)
	if fields == nil {
		return nil
	}
	var out []policydecode.Node
	for _, key := range []string{"any", "all"} {
		for i, filter := range sequence(fields[key]) {
			n := block
			n.Path, n.Value = block.Path+"."+key+"["+strconv.Itoa(i)+"]", filter
			out = append(out, n)
		}
	}
	return append(out, block)
}
