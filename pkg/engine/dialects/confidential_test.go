package dialects_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// A step is confidential if its rule may read values of a Secret, or what an earlier rule made of one.
func TestConfidential(t *testing.T) {
	secret := objectOf(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c", "namespace": "n"}, "data": {"k": "dg=="}}`)
	for name, c := range map[string]struct {
		kind  string
		write []string // what the policies write, one after the other
		want  string
	}{
		"a Secret, as Kubernetes has it": {"MutatingAdmissionPolicy", []string{"object.metadata.name", "object.data.k", "'literal'"}, "false true false"},
		"a Secret, as Kyverno has it":    {"MutatingPolicy", []string{"object.metadata.name", "object.data.k", "'literal'"}, "false true false"},
		"an answer":                      {"MutatingPolicy", []string{"string(resource.Get('v1', 'configmaps', 'n', 'c').data.a)", "string(resource.Get('v1', 'secrets', 'n', 's').data.k)", "object.metadata.annotations['l1']"}, "false true true"},
	} {
		t.Run(name, func(t *testing.T) {
			var policies []string
			for i, value := range c.write {
				policies = append(policies, celPolicy(c.kind, fmt.Sprint("p", i), "", celMutation(fmt.Sprintf("Object{metadata: Object.metadata{annotations: {'l%d': string(%s)}}}", i, value))))
			}
			object := objectOf(t, plainConfigMap)
			if !strings.Contains(policies[1], "resource.Get") {
				object = secret
				for i := range policies {
					policies[i] = strings.ReplaceAll(policies[i], "configmaps", "secrets")
				}
			}
			var got []string
			for _, s := range evaluated(t, object, policies).Steps {
				if s.Outcome != engine.Changed || s.Confidential != (s.Writes != nil) {
					t.Errorf("%s: %s, %v", s.Rule, s.Outcome, s.Err)
				}
				got = append(got, fmt.Sprint(s.Confidential))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
