package request

import (
	"fmt"
	"testing"
)

func TestClassify(t *testing.T) {
	const builtInType, custom = "v1", "x.io/v1"
	for _, c := range []struct {
		name               string
		apiVersion         string
		live, want, answer string // spec
		is                 string
	}{
		{"as predicted", custom, `{a: 1}`, `{a: 2}`, `{a: 2}`, ""},
		{"a default beside ours", custom, `{}`, `{a: 2}`, `{a: 2, b: 7}`, "defaults added .spec.b"},
		{"a removed field gets its default", custom, `{a: 5}`, `{}`, `{a: 7}`, "defaults added .spec.a"},
		{"an empty list", custom, `{}`, `{a: []}`, `{}`, "empty value dropped .spec.a"},
		{"nothing but nulls and empty maps", custom, `{}`, `{a: {b: null, c: {}}}`, `{}`, "empty value dropped .spec.a"},
		{"null in a custom resource", custom, `{a: 1}`, `{a: null}`, `{}`, "empty value dropped .spec.a"},
		{"null is absent in a built-in type", builtInType, `{}`, `{a: null}`, `{}`, ""},
		{"null asks for the default", custom, `{a: 1}`, `{a: null}`, `{a: 7}`, "normalised .spec.a"},
		{"false is not stored by Go types", builtInType, `{a: true}`, `{a: false}`, `{}`, "empty value dropped .spec.a"},
		{"false is stored in custom resources", custom, `{a: true}`, `{a: false}`, `{}`, "lost .spec.a"},
		{"a quantity", custom, `{}`, `{a: 1000m}`, `{a: "1"}`, "normalised .spec.a"},
		{"a quantity from a number", custom, `{}`, `{a: 1}`, `{a: "1"}`, "normalised .spec.a"},
		{"bytes", custom, `{}`, `{a: YR==}`, `{a: YQ==}`, "normalised .spec.a"},
		{"a duration", custom, `{}`, `{a: 60s}`, `{a: 1m0s}`, "normalised .spec.a"},
		{"a time", custom, `{}`, `{a: "2026-01-01T01:00:00.5+01:00"}`, `{a: "2026-01-01T00:00:00Z"}`, "normalised .spec.a"},
		{"another value", custom, `{a: x}`, `{a: y}`, `{a: z}`, "overridden .spec.a"},
		{"our value is set back", custom, `{a: x}`, `{a: y}`, `{a: x}`, "overridden .spec.a"},
		{"our value is ignored", custom, `{}`, `{a: y}`, `{}`, "refused .spec.a"},
		{"an element that was kept is gone", custom, `{a: [1, 2]}`, `{a: [3, 2]}`, `{a: [3]}`, "lost .spec.a[1]"},
		{"a field beside ours is gone", custom, `{a: 1, b: 2}`, `{a: 3, b: 2}`, `{a: 3}`, "lost .spec.b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := func(spec string) string {
				return fmt.Sprintf("{apiVersion: %s, kind: Thing, metadata: {name: x}, spec: %s}", c.apiVersion, spec)
			}
			live := object(t, state(c.live))
			r, err := Plan(Input{Live: live, After: object(t, state(c.want)), Manager: testManager})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := Classify(r, object(t, state(c.answer)))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range answer.Difference {
				got += fmt.Sprintf("%s %s", f.Class, f.Path)
			}
			if got != c.is {
				t.Errorf("got %q, want %q", got, c.is)
			}
		})
	}
}
