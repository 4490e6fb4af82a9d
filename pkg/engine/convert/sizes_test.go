package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// manyRules are policies of n rules each, by what makes many.
func manyRules() map[string]func(n int) string {
	rules := func(rule func(i int) string) func(n int) string {
		return func(n int) string {
			texts := make([]string, n)
			for i := range texts {
				texts[i] = fmt.Sprintf(`{"name": "r%d", %s}`, i, rule(i))
			}
			return fmt.Sprintf(`{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "many"}, "spec": {"rules": [%s]}}`, strings.Join(texts, ", "))
		}
	}
	match := func(kind, more string) string {
		return fmt.Sprintf(`"match": {"any": [{"resources": {%s "kinds": [%q]}}]}`, more, kind)
	}
	label := func(i int) string {
		return fmt.Sprintf(`"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"l%d": "v"}}}}`, i)
	}
	return map[string]func(int) string{
		"rules":          rules(func(i int) string { return match("ConfigMap", "") + ", " + label(i) }),
		"rules for Pods": rules(func(i int) string { return match("Pod", "") + ", " + label(i) }),
		"rules for namespaces with different labels": rules(func(i int) string {
			return match("ConfigMap", fmt.Sprintf(`"namespaceSelector": {"matchLabels": {"l": "v%d"}},`, i)) + ", " + label(i)
		}),
		"rules with preconditions": rules(func(i int) string {
			return match("ConfigMap", "") + fmt.Sprintf(`, "preconditions": {"all": [{"key": "{{ request.object.data.k || '' }}", "operator": "Equals", "value": "v%d"}]}, `, i) + label(i)
		}),
		"rules that read ConfigMaps": rules(func(i int) string {
			return match("Service", "") + fmt.Sprintf(`, "context": [{"name": "c", "configMap": {"name": "c%d", "namespace": "n"}}], `, i) +
				fmt.Sprintf(`"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"l%d": "{{ c.data.k }}"}}}}`, i)
		}),
		"entries with one name": func(n int) string {
			entries, labels := make([]string, n), make([]string, n)
			for i := range entries {
				entries[i] = fmt.Sprintf(`{"name": "c", "configMap": {"name": "c%d", "namespace": "n"}}`, i)
				labels[i] = fmt.Sprintf(`"l%d": "v"`, i)
			}
			return rules(func(int) string {
				return match("Service", "") + fmt.Sprintf(`, "context": [%s], "mutate": {"patchStrategicMerge": {"metadata": {"labels": {%s, "l": "{{ c.data.k }}"}}}}`,
					strings.Join(entries, ", "), strings.Join(labels, ", "))
			})(1)
		},
		"conditions of one rule": func(n int) string {
			anchors := make([]string, n)
			for i := range anchors {
				anchors[i] = fmt.Sprintf(`"(k%d)": "v"`, i)
			}
			return rules(func(int) string {
				return match("ConfigMap", "") + fmt.Sprintf(`, "mutate": {"patchStrategicMerge": {"data": {%s, "x": "y"}}}`, strings.Join(anchors, ", "))
			})(1)
		},
		"fields of one rule": func(n int) string {
			fields := make([]string, n)
			for i := range fields {
				fields[i] = fmt.Sprintf(`"+(k%d)": "v"`, i)
			}
			return rules(func(int) string {
				return match("ConfigMap", "") + fmt.Sprintf(`, "mutate": {"patchStrategicMerge": {"data": {%s}}}`, strings.Join(fields, ", "))
			})(1)
		},
	}
}

// converting returns what converts a policy of n rules, with all of its forms.
func converting(t testing.TB, world *snapshot.Snapshot, policy string) func() {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(policy), &u.Object); err != nil {
		t.Fatal(err)
	}
	d := engine.NewDocument(u, "policy.yaml:1")
	return func() {
		c := convert.Convert(t.Context(), d, convert.Options{To: convert.MutatingPolicy, Mapper: world.Mapper(), Reader: world})
		c.Notes()
		c.Old()
		for _, form := range c.Forms() {
			_ = form.String()
		}
	}
}

// Twice the rules take twice the allocations.
func TestSizesAreLinear(t *testing.T) {
	world, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const most = 2.2
	for name, policy := range manyRules() {
		n := 60
		if name == "entries with one name" { // of which each is little work
			n = 240
		}
		one := testing.AllocsPerRun(1, converting(t, world, policy(n)))
		two := testing.AllocsPerRun(1, converting(t, world, policy(2*n)))
		if two > most*one {
			t.Errorf("%s: %.0f allocations for %d, %.0f for %d", name, one, n, two, 2*n)
		}
	}
}

// BenchmarkSizes converts policies of n and of 2n rules, which takes twice the time and memory.
func BenchmarkSizes(b *testing.B) {
	world, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, policy := range manyRules() {
		for _, n := range []int{500, 1000} {
			convert := converting(b, world, policy(n))
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					convert()
				}
			})
		}
	}
}
