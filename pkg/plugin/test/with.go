package test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// standIns are the policies of --with, which are tested instead of those that tests name.
type standIns struct{ policies, inputs []engine.Document }

// loadWith reads the policies of --with.
func (o *Options) loadWith(ctx context.Context, paths []string, from *evaluate.Options) error {
	warn := func(origin, text string) { o.factory.Warn(fmt.Errorf("%s: %s", origin, text)) }
	accepts := func(gk schema.GroupKind) engine.Role { return engine.RoleOf(gk, from.Dialects) }
	documents, broken, err := input.Policies{
		Paths: paths, Reader: &input.Reader{}, Warn: warn, Note: func(string, string) {}, Accepts: accepts,
	}.Load(ctx)
	if err == nil && len(broken) > 0 {
		err = broken[0]
	}
	if err != nil {
		return fmt.Errorf("--with: %w", err)
	}
	o.with = &standIns{}
	for _, d := range documents {
		if accepts(d.Key.GroupKind) == engine.Policy {
			o.with.policies = append(o.with.policies, d)
		} else {
			o.with.inputs = append(o.with.inputs, d)
		}
	}
	return nil
}

// of returns the policies that stand in for one: that of its name, or those that convert makes of its rules.
func (w *standIns) of(d engine.Document) (out []engine.Document) {
	for _, p := range w.policies {
		rest, found := strings.CutPrefix(p.Key.Name, d.Key.Name)
		if !found || p.Key.Namespace != d.Key.Namespace {
			continue
		}
		if rest == "" || derivedPart.MatchString(rest) ||
			slices.ContainsFunc(rulesOf(d), func(rule string) bool { return ofRule(rest, rule) }) {
			out = append(out, p)
		}
	}
	return out
}

// derivedPart matches the suffix that convert appends to the name of a policy for rules derived from its Pod
// rules, and for further targets.
var derivedPart = regexp.MustCompile(`^(-controllers|-(daemonsets|deployments|jobs|replicasets|replicationcontrollers|statefulsets|cronjobs))?(-\d+)?$`)

// ofRule reports whether the rest of a name is that of a policy which convert makes of one rule.
func ofRule(rest, rule string) bool {
	after, found := strings.CutPrefix(rest,
		"-"+strings.Trim(notOfNames.ReplaceAllString(strings.ToLower(rule), "-"), "-"))
	return found && rule != "" && derivedPart.MatchString(after)
}

var notOfNames = regexp.MustCompile(`[^a-z0-9]+`)

// rulesOf returns the names of the mutate rules of a policy.
func rulesOf(d engine.Document) (out []string) {
	rules, _ := d.Field("spec", "rules").([]any)
	for _, raw := range rules {
		rule, _ := raw.(map[string]any)
		if name, _ := rule["name"].(string); rule["mutate"] != nil {
			out = append(out, name)
		}
	}
	return out
}

// standing is what is tested for a result.
type standing struct {
	policies []engine.Document // for the rule
	all      []engine.Document // for the policy
	whole    bool              // policies also do what other rules of the policy do
}

func isOneOf(policies []engine.Document, ref engine.RuleRef) bool {
	return slices.ContainsFunc(policies, func(d engine.Document) bool { return isPolicy(refOf(d).Policy)(ref) })
}

// standsFor returns what is tested for a result; nil for the policy itself.
func (s *suite) standsFor(r *result) *standing {
	if s.with == nil {
		return nil
	}
	out := &standing{}
	for _, d := range s.policies {
		if !isPolicy(r.policy)(refOf(d)) {
			continue
		}
		all := s.with.of(d)
		own := slices.DeleteFunc(slices.Clone(all), func(p engine.Document) bool {
			return !ofRule(strings.TrimPrefix(p.Key.Name, d.Key.Name), written(r.rule))
		})
		if len(own) == 0 {
			own, out.whole = all, len(rulesOf(d)) > 1 && r.rule != ""
		}
		out.policies, out.all = append(out.policies, own...), append(out.all, all...)
	}
	return out
}
