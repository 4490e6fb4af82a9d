package location_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
)

const (
	exist    = location.MustExist
	notExist = location.MustNotExist
)

type written struct {
	subPath   string
	condition location.Condition
}

func TestCompileTests(t *testing.T) {
	for _, c := range []struct {
		says, location string
		tests          []written
		want           string // the error
	}{
		{"no tests", "spec.a", nil, ""},
		{"a prefix", "spec.c[name: foo].image", []written{{"spec.c", exist}}, ""},
		{"the whole location", "spec.c[name: foo].image", []written{{"spec.c[name: foo].image", notExist}}, ""},
		{"quotes do not matter", "spec.c[name: foo].image", []written{{`"spec".c["name":"foo"]`, exist}}, ""},
		{"the empty path says nothing", "spec.a", []written{{"", exist}}, ""},
		{"one condition twice", "spec.a", []written{{"spec", exist}, {"spec", exist}}, ""},
		{
			"another path", "spec.c[name: foo].image",
			[]written{{"spec.volumes", exist}},
			"all subpaths must be a prefix of the `location` value of the mutation: subpath \"spec.volumes\" is not a prefix of location \"spec.c[name: foo].image\"",
		},
		{
			"a glob is no prefix of a key", "c[name: foo].image",
			[]written{{"c[name: *]", exist}},
			"all subpaths must be a prefix of the `location` value of the mutation: subpath \"c[name: *]\" is not a prefix of location \"c[name: foo].image\"",
		},
		{
			"both conditions", "spec.a",
			[]written{{"spec", exist}, {"spec", notExist}},
			`conflicting path test conditions: path "spec" is marked both MustExist and MustNotExist`,
		},
		{
			"a part of what must not exist", "spec.a.b",
			[]written{{"spec.a", notExist}, {"spec.a.b", exist}},
			`conflicting path test conditions: path "spec.a.b" is marked MustExist but parent "spec.a" MustNotExist`,
		},
		{
			"the order does not matter", "spec.a.b",
			[]written{{"spec.a.b", exist}, {"spec.a", notExist}},
			`conflicting path test conditions: path "spec.a.b" is marked MustExist but parent "spec.a" MustNotExist`,
		},
		{"the parent exists and the part does not", "spec.a.b", []written{{"spec.a.b", notExist}, {"spec.a", exist}}, ""},
	} {
		t.Run(c.says, func(t *testing.T) {
			got := ""
			if _, err := location.CompileTests(parseForTest(t, c.location), list(t, c.tests)); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func list(t *testing.T, tests []written) []location.Test {
	t.Helper()
	var out []location.Test
	for _, w := range tests {
		out = append(out, location.Test{SubPath: parseForTest(t, w.subPath), Condition: w.condition})
	}
	return out
}

func parseForTest(t *testing.T, text string) location.Path {
	t.Helper()
	p, err := location.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
