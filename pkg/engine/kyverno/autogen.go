package kyverno

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// autogenAnnotation names the controllers for which rules are derived: "none", or a list such as
// "Deployment,CronJob"; all by default.
const autogenAnnotation = "pod-policies.kyverno.io/autogen-controllers"

// maxRuleName is the longest name of a rule; derived names are cut.
const maxRuleName = 63

const (
	autogenPrefix = "autogen-"
	cronJob       = "CronJob"
)

// podControllers maps each kind with a Pod template to the kinds that a derived rule matches, in the order of
// Kyverno's sorted list.
func podControllers() map[string]string {
	return map[string]string{
		"DaemonSet":             "apps/v1/DaemonSet",
		"Deployment":            "apps/v1/Deployment",
		"Job":                   "batch/v1/Job",
		"ReplicaSet":            "apps/v1/ReplicaSet",
		"ReplicationController": "v1/ReplicationController",
		"StatefulSet":           "apps/v1/StatefulSet",
	}
}

// WrittenRule is a mutate rule of a policy, as written or as derived for Pod controllers.
type WrittenRule struct {
	Fields  map[string]any
	Index   int  // in spec.rules, of the rule or its source
	Derived bool // for Pod controllers
}

// WrittenRules returns the mutate rules of a policy in evaluation order.
func WrittenRules(d engine.Document) []WrittenRule {
	spec := mapping(d.Object().Object["spec"])
	var all []map[string]any
	for _, raw := range sequence(spec["rules"]) {
		all = append(all, mapping(raw))
	}
	derived := autogenRules(all, d.Object().GetAnnotations())
	var out []WrittenRule
	for i, rule := range all {
		if rule["mutate"] != nil && (len(derived) == 0 || !isAutogenRule(ruleName(rule))) {
			out = append(out, WrittenRule{Fields: rule, Index: i})
		}
	}
	return append(out, derived...)
}

// derivation describes how a Pod rule becomes a rule for controllers.
type derivation struct {
	prefix   string   // of the rule's name
	template []string // the path of the Pod template
	kinds    []any    // the kinds that the derived rule matches
	allKinds bool     // replace the kinds of every filter, not only of Pod filters
}

func isAutogenRule(name string) bool { return strings.HasPrefix(name, autogenPrefix) }

// autogenRules derives rules for Pod controllers from the raw rules of a policy (pkg/autogen/v1). Rules with
// targets and nested foreach entries have none: Kyverno drops both on the way and patches the wrong object.
func autogenRules(rules []map[string]any, annotations map[string]string) (derived []WrittenRule) {
	if !allowsAutogen(rules) {
		return nil
	}
	for i, rule := range rules {
		for _, d := range derivations(annotations) {
			if out := d.derive(rule); out != nil {
				derived = append(derived, WrittenRule{Fields: out, Index: i, Derived: true})
			}
		}
	}
	return derived
}

func derivations(annotations map[string]string) []derivation {
	known := podControllers()
	wanted, limited := annotations[autogenAnnotation]
	requested := strings.Split(wanted, ",")
	withCronJob := !limited || strings.Contains(wanted, cronJob) || slices.Contains(requested, "all")
	var kinds []any
	for _, kind := range slices.Sorted(maps.Keys(known)) {
		if !limited || slices.Contains(requested, kind) || slices.Contains(requested, "all") {
			kinds = append(kinds, known[kind])
		}
	}
	var out []derivation
	if len(kinds) > 0 {
		out = append(out, derivation{prefix: "autogen-", template: []string{"spec", "template"}, kinds: kinds})
	}
	if withCronJob {
		out = append(out, derivation{
			prefix: "autogen-cronjob-", template: []string{"spec", "jobTemplate", "spec", "template"},
			kinds: []any{"batch/v1/CronJob"}, allKinds: true,
		})
	}
	return out
}

// allowsAutogen reports whether a policy may have derived rules: one rule that cannot be translated rules all
// of them out.
func allowsAutogen(rules []map[string]any) bool {
	needed := false
	for _, rule := range rules {
		mutate := mapping(rule["mutate"])
		if rule["generate"] != nil || stringOrEmpty(mutate["patchesJson6902"]) != "" || mutate["patches"] != nil {
			return false
		}
		for _, entry := range sequence(mutate["foreach"]) {
			if stringOrEmpty(mapping(entry)["patchesJson6902"]) != "" {
				return false
			}
		}
		for _, filter := range append(rawFilters(rule["match"]), rawFilters(rule["exclude"])...) {
			resources := mapping(filter["resources"])
			if !translatable(resources) {
				return false
			}
			needed = needed || namesPodOrController(resources)
		}
	}
	return needed
}

func translatable(resources map[string]any) bool {
	kinds := sequence(resources["kinds"])
	return stringOrEmpty(resources["name"]) == "" && len(sequence(resources["names"])) == 0 &&
		resources["selector"] == nil &&
		resources["annotations"] == nil && (len(kinds) <= 1 || !hasPod(kinds))
}

func namesPodOrController(resources map[string]any) bool {
	known := podControllers()
	return slices.ContainsFunc(sequence(resources["kinds"]), func(kind any) bool {
		_, controller := known[stringOrEmpty(kind)]
		return controller || stringOrEmpty(kind) == cronJob || stringOrEmpty(kind) == "Pod"
	})
}

// derive returns the rule for controllers; nil if there is none.
func (d derivation) derive(rule map[string]any) map[string]any {
	name := stringOrEmpty(rule["name"])
	mutate := mapping(rule["mutate"])
	if isAutogenRule(name) || len(sequence(mutate["targets"])) > 0 || !matchesPods(rule) {
		return nil
	}
	patch := d.mutate(mutate)
	if patch == nil {
		return nil
	}
	out := maps.Clone(rule)
	out["mutate"] = patch
	out["match"] = d.block(rule["match"], true)
	if rule["exclude"] != nil {
		out["exclude"] = d.block(rule["exclude"], false)
	}
	shifted := d.shift(out)
	name = d.prefix + name
	shifted["name"] = name[:min(len(name), maxRuleName)]
	return shifted
}

// matchesPods reports whether a rule is for Pods: its match names them, and so does its exclude if it names
// any kinds.
func matchesPods(rule map[string]any) bool {
	excluded := rawKinds(rule["exclude"])
	return hasPod(rawKinds(rule["match"])) && (len(excluded) == 0 || hasPod(excluded))
}

// mutate wraps the patches into the Pod template; nil if a patch has no counterpart. Like Kyverno, it drops
// all other fields.
func (d derivation) mutate(mutate map[string]any) map[string]any {
	for _, form := range []string{"patchStrategicMerge", "overlay"} {
		if patch := mutate[form]; patch != nil {
			return map[string]any{form: d.wrap(patch)}
		}
	}
	var entries []any
	for _, raw := range sequence(mutate["foreach"]) {
		entry := mapping(raw)
		if entry["patchStrategicMerge"] == nil {
			return nil
		}
		out := map[string]any{"patchStrategicMerge": d.wrap(entry["patchStrategicMerge"])}
		for _, key := range []string{"list", "context", "preconditions"} {
			if v, ok := entry[key]; ok {
				out[key] = v
			}
		}
		entries = append(entries, out)
	}
	if len(entries) == 0 {
		return nil
	}
	return map[string]any{"foreach": entries}
}

func (d derivation) wrap(patch any) any {
	for i := len(d.template) - 1; i >= 0; i-- {
		patch = map[string]any{d.template[i]: patch}
	}
	return patch
}

func (d derivation) block(raw any, isMatch bool) map[string]any {
	block := maps.Clone(mapping(raw))
	for _, key := range []string{"any", "all"} {
		filters := sequence(block[key])
		if len(filters) == 0 {
			continue
		}
		out := make([]any, len(filters))
		for i, f := range filters {
			out[i] = f
			if d.allKinds || hasPod(sequence(mapping(mapping(f)["resources"])["kinds"])) {
				out[i] = d.withKinds(mapping(f))
			}
		}
		block[key] = out
		return block
	}
	if isMatch || len(sequence(mapping(block["resources"])["kinds"])) > 0 {
		return d.withKinds(block)
	}
	return block
}

func (d derivation) withKinds(filter map[string]any) map[string]any {
	return diff.With(filter, "resources", diff.With(mapping(filter["resources"]), "kinds", d.kinds))
}

// shift points the expressions of a rule at the Pod template by string replacement in its JSON, as Kyverno
// does.
func (d derivation) shift(rule map[string]any) (shifted map[string]any) {
	template := strings.Join(d.template, ".")
	replacer := strings.NewReplacer(
		"request.object.spec", "request.object."+template+".spec",
		"request.oldObject.spec", "request.oldObject."+template+".spec",
		"request.object.metadata", "request.object."+template+".metadata",
		"request.oldObject.metadata", "request.oldObject."+template+".metadata",
	)
	if written, err := json.Marshal(rule); err == nil {
		_ = utiljson.Unmarshal([]byte(replacer.Replace(string(written))), &shifted) // still valid JSON
	}
	return shifted
}

// rawFilters lists the filters of a raw match or exclude block, including the flat form.
func rawFilters(raw any) []map[string]any {
	block := mapping(raw)
	out := []map[string]any{{"resources": block["resources"]}}
	for _, f := range append(slices.Clone(sequence(block["any"])), sequence(block["all"])...) {
		out = append(out, mapping(f))
	}
	return out
}

func rawKinds(raw any) []any {
	var out []any
	for _, f := range rawFilters(raw) {
		out = append(out, sequence(mapping(f["resources"])["kinds"])...)
	}
	return out
}

func hasPod(kinds []any) bool {
	return slices.ContainsFunc(kinds, func(kind any) bool {
		parsed, err := selector.ParseKind(stringOrEmpty(kind))
		return err == nil && parsed.Kind == "Pod"
	})
}

func sequence(v any) []any       { s, _ := v.([]any); return s }
func stringOrEmpty(v any) string { s, _ := v.(string); return s }
