package convert_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

const fieldsPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Deployment]}}]}
    context: [{name: v, variable: {value: x}}]
    preconditions: {all: [{key: "{{ request.object.metadata.name }}", operator: Equals, value: a}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ v }}"}}}}
`

// TestEveryField gives a policy each field that Kyverno's has, and sees that it is carried over, refused by
// its name, or without effect, as testdata/kyverno-fields.txt says.
func TestEveryField(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "kyverno-fields.txt"))
	if err != nil {
		t.Fatal(err)
	}
	world, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, before := convertFields(t, world, "{}")
	row, rows := regexp.MustCompile(`^(\w+\.\w+) +(carried|refused|no effect) +(\{.*)$`), 0
	for _, line := range strings.Split(string(data), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			if line != "" && !strings.HasPrefix(line, "#") {
				t.Errorf("is not a row: %s", line)
			}
			continue
		}
		rows++
		t.Run(m[1]+" "+m[2], func(t *testing.T) {
			refusals, written := convertFields(t, world, m[3])
			got, name := "carried", m[1][strings.Index(m[1], ".")+1:]
			switch {
			case len(refusals) > 0 && strings.Contains(refusals[0].Error(), name):
				got = "refused"
			case len(refusals) > 0:
				got = "refused without its name: " + refusals[0].Error()
			case written == before:
				got = "no effect"
			}
			if got != m[2] {
				t.Errorf("got %s, want %s\n%s", got, m[2], written)
			}
		})
	}
	if rows < 90 {
		t.Errorf("only %d rows", rows)
	}
}

// convertFields converts the policy with values at some paths of its spec.
func convertFields(t *testing.T, world *snapshot.Snapshot, set string) (refusals []*convert.Refusal, written string) {
	t.Helper()
	policy, values := &unstructured.Unstructured{}, map[string]any{}
	if err := yaml.Unmarshal([]byte(fieldsPolicy), &policy.Object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(set), &values); err != nil {
		t.Fatal(err)
	}
	for path, value := range values {
		policy.Object["spec"] = with(policy.Object["spec"], strings.Split(path, "/"), value)
	}
	c := convert.Convert(t.Context(), engine.NewDocument(policy, "policy.yaml:1"), convert.Options{
		To: convert.MutatingPolicy, Mapper: world.Mapper(), Reader: world,
	})
	if len(c.Refusals) > 0 {
		return c.Refusals, ""
	}
	return nil, c.Forms()[0].String()
}

// with is a value with another one at a path.
func with(in any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch in := in.(type) {
	case []any:
		i, _ := strconv.Atoi(path[0])
		if i == len(in) {
			in = append(in, nil)
		}
		in[i] = with(in[i], path[1:], value)
		return in
	case map[string]any:
		in[path[0]] = with(in[path[0]], path[1:], value)
		return in
	}
	return map[string]any{path[0]: with(nil, path[1:], value)}
}
