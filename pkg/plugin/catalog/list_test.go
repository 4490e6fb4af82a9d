package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/catalog"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

// published is the schema that consumers go by.
const published = "../../../docs/policylist.schema.json"

func clusterPolicy(name string) engine.Document {
	return engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": name, "namespace": "shop"},
	}}, "p.yaml:1")
}

func ruleOf(policy string) engine.Description {
	return engine.Description{
		Rule:     engine.RuleRef{Dialect: "kyverno", Policy: policy, Rule: "r", Via: "binding", Origin: "p.yaml:1"},
		Existing: engine.OnAdmission,
	}
}

// full is a list that holds every field.
func full(t *testing.T) catalog.List {
	t.Helper()
	b := catalog.NewBuilder()
	b.Policy("kyverno", clusterPolicy("a"))
	d := ruleOf("a")
	d.Matches = []engine.Selection{{Version: "v1", Kind: "Pod"}}
	d.Targets = []engine.Selection{{Version: "v1", Kind: "Secret"}}
	d.Where = []string{"annotations: a=b"}
	d.Operations = []engine.Operation{engine.OperationCreate}
	d.Changes = []string{"data"}
	d.Asks = []engine.Ask{{Of: engine.AskService, What: "GET https://a"}}
	d.Gap = errors.New("no")
	b.Rule(d)
	b.Problem(catalog.Error, &engine.CompileError{Origin: "p.yaml:1", Policy: "ClusterPolicy a", Rule: "s", Field: "spec", Err: errors.New("no")})
	b.Problem(catalog.Warning, &engine.CompileError{Origin: "q.yaml:1", Policy: "PolicyException x", Err: errors.New("no")})
	b.Idle(2)
	return b.List()
}

func printed(t *testing.T, format string, l catalog.List) string {
	t.Helper()
	var out bytes.Buffer
	if err := catalog.Print(&out, format, l); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// joined is the list of two clusters that have the same, of a third that has one of the policies otherwise,
// and of one that is down.
func joined(t *testing.T) catalog.List {
	t.Helper()
	one, two, other := full(t), full(t), catalog.NewBuilder()
	changed := clusterPolicy("a")
	changed.Object().Object["spec"] = map[string]any{"rules": []any{}}
	other.Policy("kyverno", changed)
	other.Rule(ruleOf("a"))
	third := other.List()
	clusters := []catalog.Cluster{{Name: "eu", Server: "s"}, {Name: "us"}, {Name: "old"}, {Name: "down", Problem: "refused"}}
	return catalog.Join(clusters, []*catalog.List{&one, &two, &third, nil})
}

// Policies that are the same on several clusters are there once. Those that only look alike are not.
func TestJoin(t *testing.T) {
	want := "CLUSTER   POLICIES   RULES   ERRORS   PROBLEM\n" +
		"eu        1          1       1        p.yaml:1: ClusterPolicy a, rule s: spec: no\n" +
		"us        1          1       1        p.yaml:1: ClusterPolicy a, rule s: spec: no\n" +
		"old       1          1       0        <none>\n" +
		"down      0          0       0        refused\n\n" +
		"POLICY   RULE          CLUSTERS   LANGUAGE   MATCHES                       CHANGES      EXISTING    ASKS\n" +
		"shop/a   via binding   eu, us     kyverno    Pod (1 condition) -> Secret   data         admission   service\n" +
		"shop/a   via binding   old        kyverno    -                             (computed)   admission   -\n"
	got := printed(t, formats.Table, joined(t))
	if !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s", got)
	}
	for _, line := range []string{
		"error: p.yaml:1: ClusterPolicy a, rule s: spec: no (on eu, us)\n", "q.yaml:1: PolicyException x: no (on eu, us)\n",
		"4 installed policies",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("there is no %q in:\n%s", line, got)
		}
	}
	same := full(t)
	if l := catalog.Join([]catalog.Cluster{{Name: "eu"}, {Name: "us"}}, []*catalog.List{&same, &same}); len(l.Policies) != 1 || !slices.Equal(l.Policies[0].Clusters, []string{"eu", "us"}) || len(same.Policies[0].Clusters) > 0 {
		t.Errorf("got %+v", l)
	}
}

// The schema knows every field that a list can have, and no other.
func TestListSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(published)
	if err != nil {
		t.Fatal(err)
	}
	list, err := jsonschema.UnmarshalJSON(strings.NewReader(printed(t, formats.JSON, joined(t))))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(list); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	promised, used := map[string]bool{}, map[string]bool{}
	fields(whole, "", "properties", promised)
	fields(list, "", "", used)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(promised)), slices.Sorted(maps.Keys(used))); diff != "" {
		t.Error("-schema +list:\n" + diff)
	}
	list.(map[string]any)["more"] = 1
	if schema.Validate(list) == nil {
		t.Error("the schema takes a field that there is not")
	}
}

// fields collects the names of fields: of all, or of those below a name alone.
func fields(v any, parent, below string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if below == "" || parent == below {
				into[name] = true
			}
			fields(value, name, below, into)
		}
	case []any:
		for _, value := range v {
			fields(value, parent, below, into)
		}
	}
}

// What a policy says acts on no terminal and no CI runner, stays in its line, and JSON and
// YAML hold it as it is.
func TestPrintHostileTexts(t *testing.T) {
	list := func(text string) catalog.List {
		b := catalog.NewBuilder()
		b.Policy("kyverno", clusterPolicy(text))
		d := ruleOf(text)
		d.Changes, d.Where, d.Gap = []string{text}, []string{text}, errors.New(text)
		d.Asks = []engine.Ask{{Of: engine.AskService, What: text}}
		b.Rule(d)
		b.Problem(catalog.Error, &engine.CompileError{Origin: "p.yaml:1", Policy: "ClusterPolicy shop/" + text, Rule: text, Field: text, Err: errors.New(text)})
		b.Problem(catalog.Warning, &engine.CompileError{Origin: text, Policy: text, Rule: text, Field: text, Err: errors.New(text)})
		return b.List()
	}
	for _, format := range catalog.Formats() {
		lines := strings.Count(printed(t, format, list("plain")), "\n")
		for _, of := range hostile.Texts() {
			want := list(of.Text)
			text := printed(t, format, want)
			err := hostile.Terminal(text)
			switch format {
			case formats.JSON, formats.YAML:
				var got catalog.List
				if format == formats.JSON {
					err = errors.Join(err, json.Unmarshal([]byte(text), &got))
				} else {
					err = errors.Join(err, yaml.Unmarshal([]byte(text), &got))
				}
				if name := strings.ToValidUTF8(of.Text, "\ufffd"); err == nil && utf8.ValidString(of.Text) && got.Policies[0].Name != name {
					t.Errorf("%s: %q reads as %q", format, name, got.Policies[0].Name)
				}
			case formats.Name:
				err = errors.Join(err, hostile.Lines(text, lines))
			default:
				err = errors.Join(err, hostile.Lines(text, lines), hostile.Runner(text), hostile.Legible(text))
			}
			if err != nil {
				t.Errorf("%s, %s %.80q: %v", format, of.Class, of.Text, err)
			}
		}
	}
}
