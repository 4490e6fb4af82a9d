package variables_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// liveScope is the scope of an update of an object, with a bit of everything.
func liveScope(t testing.TB) *variables.Scope {
	t.Helper()
	s := newScope()
	s.Set("request", decode(t, `{
		"operation": "UPDATE",
		"object": {
			"metadata": {"name": "web", "labels": {"app": "web"}},
			"data": {"keyone": "one", "keynew": "live"},
			"spec": {"replicas": 3, "half": 0.5, "on": true, "list": ["a", "b"], "none": null, "big": 9007199254740993, "bigger": 9007199254740992, "hostile": "{{ request.operation }}", "$": "$(x)"}
		},
		"oldObject": {"metadata": {"name": "old"}, "data": {"keynew": "old"}}
	}`))
	s.Set("element", decode(t, `{"name": "my-c", "key": "image"}`))
	s.Set("elementIndex", int64(2))
	s.Set("images", decode(t, `{"containers": {"my-c": {"tag": "1.2"}}}`))
	return s
}

func TestRender(t *testing.T) {
	for _, c := range []struct{ name, doc, want string }{
		{"text", `"{{ request.object.metadata.name }}"`, `"web"`},
		{"a number keeps its type", `"{{request.object.spec.replicas}}"`, `3`},
		{"a fraction keeps its type", `"{{request.object.spec.half}}"`, `0.5`},
		{"a boolean keeps its type", `"{{request.object.spec.on}}"`, `true`},
		{"null keeps its type", `"{{request.object.spec.none}}"`, `null`},
		{"a list keeps its type", `"{{request.object.spec.list}}"`, `["a","b"]`},
		{"a map keeps its type", `"{{request.object.metadata.labels}}"`, `{"app":"web"}`},
		{"in other text values are text", `"n={{request.object.spec.replicas}} {{request.object.spec.half}} {{request.object.spec.on}} {{request.object.spec.none}}"`, `"n=3 0.5 true null"`},
		{
			"in other text numbers are float64", "\"{{ `9007199254740993` }} {{ `1152921504606846977` }} {{ `1e21` }} {{ `1e-7` }} {{ to_string(`1e-7`) }} {{ {a: `1e-7`} }}\"",
			`"9007199254740992 1152921504606847000 1e+21 1e-07 1e-7 {\"a\":1e-07}"`,
		},
		{"an integer of the object is a float64", `"{{request.object.spec.big}} {{ request.object.spec.big == request.object.spec.bigger }}"`, `"9007199254740992 true"`},
		{"also as it is, and in a list", `["{{request.object.spec.big}}", "{{ [request.object.spec.big] }}"]`, `[9007199254740992, [9007199254740992]]`},
		{"in other text maps are JSON", `" {{request.object.metadata.labels}}"`, `" {\"app\":\"web\"}"`},
		{"two variables", `"{{element.name}}{{elementIndex}}"`, `"my-c2"`},
		{"blanks around make a text", `"{{elementIndex}} "`, `"2 "`},
		{"nested", `"{{ element.{{ 'name' }} }}"`, `"my-c"`},
		{"nested as a quoted key", `"r/{{ images.containers.\"{{element.name}}\".tag }}"`, `"r/1.2"`},
		{"nested keeps the outer type", `"{{ request.object.spec.{{ 'replicas' }} }}"`, `3`},
		{"nested twice", `"{{ element.{{ element.{{ 'nameX' | replace_all(@, 'X', '') | 'key' }} | 'name' }} }}"`, `"my-c"`},
		{"two nested", `"{{ join('-', ['{{ element.name }}', '{{ element.key }}']) }}"`, `"my-c-image"`},
		{"a hash has braces too", `"{{ {a: element.name} }}"`, `{"a":"my-c"}`},
		{"a hash at the braces", `"{{{a: element.name}}}"`, `{"a":"my-c"}`},
		{"a hash in a hash", `"{{ {a: {b: element.name}} }}"`, `{"a":{"b":"my-c"}}`},
		{"minus", `"{{- element.name }}"`, `"my-c"`},
		{"minus in text", `"x{{-elementIndex }}"`, `"x2"`},
		{"data is never substituted again", `"{{ request.object.spec.hostile }}"`, `"{{ request.operation }}"`},
		{"nor in text", `"x {{ request.object.spec.hostile }}"`, `"x {{ request.operation }}"`},
		{"nor inside of maps", `"{{ {a: request.object.spec.hostile} }}"`, `{"a":"{{ request.operation }}"}`},
		{"nor as references", `"{{ request.object.spec.\"$\" }}"`, `"$(x)"`},
		{"escaped", `"\\{{ element.name }}"`, `"{{ element.name }}"`},
		{"escaped beside a variable", `"\\{{ x }} {{ element.name }}"`, `"{{ x }} my-c"`},
		{"escaped and never closed", `"\\{{ x"`, `"\\{{ x"`},
		{"never closed", `"{{ x"`, `"{{ x"`},
		{"never opened", `"x }}"`, `"x }}"`},
		{"never closed around a variable", `"{{ {{ element.name }}"`, `"{{ my-c"`},
		{"single braces", `"{x} {"`, `"{x} {"`},
		{"keys", `{"k-{{ element.name }}": {"{{ element.key }}": 1}}`, `{"k-my-c":{"image":1}}`},
		{"anchored keys", `{"+({{ element.key }})": "{{ element.name }}"}`, `{"+(image)":"my-c"}`},
		{"a null key keeps its text", `{"{{ request.object.spec.none }}": 1}`, `{"{{ request.object.spec.none }}":1}`},
		{"lists", `["{{ element.name }}", {"x": ["{{elementIndex}}"]}, null, 1, true]`, `["my-c",{"x":[2]},null,1,true]`},
		{"a patch as a text", `"- op: add\n  path: /spec/{{elementIndex}}\n  value: {{ request.object.metadata.labels }}\n"`, `"- op: add\n  path: /spec/2\n  value: {\"app\":\"web\"}\n"`},
		{"a reference to a sibling", `{"a": "x-$(./../b)", "b": "yes"}`, `{"a":"x-yes","b":"yes"}`},
		{"a reference to a variable", `{"a": "$(./../b)", "b": "{{ elementIndex }}"}`, `{"a":2,"b":2}`},
		{"an absolute reference", `{"m": {"a": "$(/m/b)", "b": "yes"}}`, `{"m":{"a":"yes","b":"yes"}}`},
		{"a reference past an anchor", `{"(a)": {"b": "yes"}, "c": "$(/a/b)"}`, `{"(a)":{"b":"yes"},"c":"yes"}`},
		{"a reference with an operator", `{"a": ">=$(./../b) and $(>./../n)", "b": "yes", "n": 3}`, `{"a":">=yes and >3","b":"yes","n":3}`},
		{"a reference into a list", `{"a": "$(/l/1)", "l": ["x", "y"]}`, `{"a":"y","l":["x","y"]}`},
		{"an escaped reference", `{"a": "\\$(POD_IP)"}`, `{"a":"$(POD_IP)"}`},
		{"the live value", `{"data": {"keynew": "{{request.object.data.keyone}}-{{@}}"}}`, `{"data":{"keynew":"one-live"}}`},
		{"the live value under an anchor", `{"data": {"+(keynew)": "{{ @ }}!"}}`, `{"data":{"+(keynew)":"live!"}}`},
		{"the live value in a list", `{"spec": {"list": ["x", "{{@}}"]}}`, `{"spec":{"list":["x","b"]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := decode(t, c.doc)
			template, err := variables.Parse(doc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Render(liveScope(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, c.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(decode(t, c.doc), doc); diff != "" {
				t.Errorf("the document was modified:\n%s", diff)
			}
		})
	}
}

func TestRenderErrors(t *testing.T) {
	template, err := variables.Parse(decode(t, `{"spec": {"x": ["{{ request.object.missing }}"]}}`), "mutate", "patchStrategicMerge")
	if err != nil {
		t.Fatal(err)
	}
	_, err = template.Render(liveScope(t))
	want := `failed to resolve request.object.missing at path /mutate/patchStrategicMerge/spec/x/0: Unknown key "missing" in path`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	var notFound *jmespath.NotFoundError
	if !errors.As(err, &notFound) || notFound.Key != "missing" {
		t.Errorf("no NotFoundError in %v", err)
	}
	for _, doc := range []string{`{"{{ elementIndex }}": 1}`, `"{{ x.{{ missing }} }}"`, `"{{ x{{ 'a b' }} }}"`} {
		template, err := variables.Parse(decode(t, doc))
		if err != nil {
			t.Fatal(err)
		}
		_, err = template.Render(liveScope(t))
		var resolve *variables.ResolveError
		if !errors.As(err, &resolve) {
			t.Errorf("%s: got %v, want a ResolveError", doc, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	deep := strings.Repeat(`[`, 300) + strings.Repeat(`]`, 300)
	for _, doc := range []string{
		`"{{ a. }}"`, `"{{}}"`, `{"{{ a. }}": 1}`, `"$(POD_IP)"`, `{"a": "$(./../b)", "b": {}}`, `{"a": "$(/../x)"}`, `{"a": "$(./../b)", "b": 1}`,
		deep, `"` + strings.Repeat("{{a.", 100) + strings.Repeat("}}", 100) + `"`,
	} {
		if template, err := variables.Parse(decode(t, doc)); err == nil {
			t.Errorf("%.60s compiles: %v", doc, template)
		}
	}
	_, err := variables.Parse(decode(t, `{"env": "$(POD_IP)"}`), "spec")
	if err == nil || !strings.Contains(err.Error(), "not resolved at path /spec/env") {
		t.Errorf("got %v, want a ReferenceError at /spec/env", err)
	}
}

func TestTemplateFacts(t *testing.T) {
	template, err := variables.Parse(decode(t, `{"a": "{{ time_now() }}", "b": ["{{ x.\"{{ element.y }}\" }}", "{{ @ }}"], "c": "{{ random('a{{ z }}') }}"}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := "reads the clock: time_now(); random value: random()"; template.NotIdempotent() != want {
		t.Errorf("NotIdempotent() = %q, want %q", template.NotIdempotent(), want)
	}
	if template.Static() {
		t.Error("a template with variables is static")
	}
	doc := decode(t, `{"a": ["b", {"c": 1}]}`)
	if template, err = variables.Parse(doc); err != nil || !template.Static() {
		t.Errorf("one without variables is not static: %v", err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		`"{{ element.name }}"`, `{"{{ element.key }}": ["x{{ elementIndex }}", "\\{{ y }}"]}`, `"{{ a.{{ b }} }}"`, `"{{ {a: {b: c}} }}"`, `"{{{{}}}}"`,
		`{"a": "$(./../b)", "b": "c"}`, `{"data": {"keynew": "{{@}}"}}`, `"{{- x }}"`, `"{{ '{{' }}"`, `{"(a)": "$(>/a)"}`, `plain {{ element.name }} text`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var doc any = text
		if json.Valid([]byte(text)) {
			if err := utiljson.Unmarshal([]byte(text), &doc); err != nil {
				return
			}
		}
		template, err := variables.Parse(doc)
		if err != nil {
			return
		}
		first, firstErr := template.Render(liveScope(t))
		second, secondErr := template.Render(liveScope(t))
		if (firstErr == nil) != (secondErr == nil) || !cmp.Equal(first, second) {
			t.Errorf("%q: first %v, %v; then %v, %v", text, first, firstErr, second, secondErr)
		}
		if _, err := json.Marshal(first); firstErr == nil && err != nil {
			t.Errorf("%q: the result is no JSON: %v", text, err)
		}
	})
}
