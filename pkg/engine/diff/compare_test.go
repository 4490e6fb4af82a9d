package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"
)

// podLike is a schema with each kind of list that the API has.
const podLike = `
types:
- name: quantity.api.resource.Quantity
  scalar: untyped
- name: port
  map:
    fields:
    - {name: number, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}, default: TCP}
    - {name: name, type: {scalar: string}}
- name: anything
  scalar: untyped
  list: {elementType: {namedType: anything}, elementRelationship: atomic}
  map: {elementType: {namedType: anything}, elementRelationship: atomic}
- name: root
  map:
    fields:
    - {name: default, type: {namedType: anything}}
    - {name: memory, type: {namedType: quantity.api.resource.Quantity}}
    - {name: text, type: {scalar: string}}
    - name: ports
      type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [number, protocol]}}
    - name: finalizers
      type: {list: {elementType: {scalar: string}, elementRelationship: associative}}
    - name: args
      type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}
    - name: byName
      type: {map: {elementType: {scalar: string}}}
    - {name: choice, type: {namedType: struct}}
    - {name: always, type: {namedType: struct}}
- name: struct
  map:
    fields:
    - name: byName
      type: {map: {elementType: {scalar: string}}}
    - name: args
      type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}
`

func podType(t *testing.T) Type {
	t.Helper()
	parser, err := typed.NewParser(typed.YAMLObject(podLike))
	if err != nil {
		t.Fatal(err)
	}
	root := parser.Type("root")
	for _, one := range root.Schema.Types {
		for i := 0; one.Map != nil && i < len(one.Fields); i++ {
			if one.Fields[i].Name == "always" {
				one.Fields[i].Default = map[string]any{} // as JSON is read
			}
		}
	}
	return Type{Schema: root.Schema, Ref: root.TypeRef}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCompare(t *testing.T) {
	known, unknown := podType(t), Type{}
	builtIn := known
	builtIn.EmptyIsAbsent = true
	for _, c := range []struct {
		why           string
		typ           Type
		before, after string
		want          []string
	}{
		{"nothing", unknown, `{a: 1}`, `{a: 1}`, nil},
		{"a scalar", unknown, `{a: {b: 1}}`, `{a: {b: 2}}`, []string{"replaced .a.b"}},
		{"a subtree is one field", unknown, `{}`, `{a: {b: {c: 1}}}`, []string{"added .a"}},
		{"removal", unknown, `{a: 1, b: 2}`, `{b: 2}`, []string{"removed .a"}},
		{"numbers by value", unknown, `{a: 1}`, `{a: 1.0}`, nil},
		{"a number is no text", unknown, `{a: 8080}`, `{a: "8080"}`, []string{"replaced .a"}},
		{"map to list", unknown, `{a: {}}`, `{a: []}`, []string{"replaced .a"}},
		{"quantities by amount", known, `{memory: 1Gi}`, `{memory: 1024Mi}`, nil},
		{"other amounts", known, `{memory: 1Gi}`, `{memory: 1025Mi}`, []string{"replaced .memory"}},
		{"text is no quantity", known, `{text: 1Gi}`, `{text: 1024Mi}`, []string{"replaced .text"}},
		{
			"an element put first is one added element", unknown,
			`{c: [{name: a}, {name: b}]}`, `{c: [{name: s}, {name: a}, {name: b}]}`,
			[]string{`added .c[name="s"]`},
		},
		{
			"a field of a named element", unknown,
			`{c: [{name: a, v: 1}, {name: b, v: 1}]}`, `{c: [{name: a, v: 1}, {name: b, v: 2}]}`,
			[]string{`replaced .c[name="b"].v`},
		},
		{
			"an element taken to the front is one move", unknown,
			`{c: [{name: a}, {name: b}, {name: z}]}`, `{c: [{name: z}, {name: a}, {name: b}]}`,
			[]string{`moved .c[name="z"]`},
		},
		{
			"a name that stands twice leaves the index", unknown,
			`{c: [{name: a}, {name: a}]}`, `{c: [{name: a}, {name: a, v: 1}]}`,
			[]string{`added .c[1].v`},
		},
		{
			"two keys, one by default", known,
			`{ports: [{number: 80}, {number: 80, protocol: UDP}]}`,
			`{ports: [{number: 80, name: web}, {number: 80, protocol: UDP}]}`,
			[]string{`added .ports[number=80,protocol="TCP"].name`},
		},
		{"a set", known, `{finalizers: [a, b]}`, `{finalizers: [c, b]}`, []string{`removed .finalizers[="a"]`, `added .finalizers[="c"]`}},
		{"an insertion in an ordered list", known, `{args: [a, b]}`, `{args: [a, x, b]}`, []string{"added .args[1]"}},
		{"a shortened list", known, `{args: [a, b, c]}`, `{args: [a, c]}`, []string{"removed .args[1]"}},
		{"null is a value where it may be", unknown, `{}`, `{a: null}`, []string{"added .a"}},
		{"null is absent in a built-in kind", Type{EmptyIsAbsent: true}, `{b: {}}`, `{a: null, b: {c: null}}`, nil},
		{"so is an empty list", builtIn, `{}`, `{args: [], ports: []}`, nil},
		{"and as much as null", builtIn, `{args: []}`, `{args: null}`, nil},
		{"even where no schema says that it is a list", Type{EmptyIsAbsent: true}, `{b: {c: []}}`, `{a: [], b: {}}`, nil},
		{"an empty list is a value in a custom resource", known, `{}`, `{args: []}`, []string{"added .args"}},
		{"and where a built-in kind takes anything", builtIn, `{}`, `{default: []}`, []string{"added .default"}},
		{"a list that is filled is a change", builtIn, `{args: []}`, `{args: [a]}`, []string{"added .args[0]"}},
		{"a list that is emptied is a change", builtIn, `{args: [a]}`, `{args: []}`, []string{"removed .args[0]"}},
		{"an empty list in a list is an element", builtIn, `{default: []}`, `{default: [[]]}`, []string{"added .default[0]"}},
		{"an empty object is a value", builtIn, `{}`, `{text: {}}`, []string{"added .text"}},
		{"an empty map is absent, too", builtIn, `{}`, `{byName: {}}`, nil},
		{"but not in a custom resource", known, `{}`, `{byName: {}}`, []string{"added .byName"}},
		{"an empty struct says something", builtIn, `{}`, `{choice: {}}`, []string{"added .choice"}},
		{"but not one that is always there", builtIn, `{}`, `{always: {byName: {}, args: []}}`, nil},
		{"unless it holds something", builtIn, `{}`, `{always: {byName: {a: b}}}`, []string{"added .always"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			var got []string
			for _, f := range Compare(object(t, c.before), object(t, c.after), c.typ) {
				got = append(got, f.String())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
