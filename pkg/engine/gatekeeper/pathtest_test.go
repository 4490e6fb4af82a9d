package gatekeeper

import (
	"testing"
)

type writtenTest struct {
	subPath   string
	condition existence
}

func TestCompileTests(t *testing.T) {
	for _, c := range []struct {
		says, location string
		tests          []writtenTest
		want           string // the error
	}{
		{"no tests", "spec.a", nil, ""},
		{"a prefix", "spec.c[name: foo].image", []writtenTest{{"spec.c", mustExist}}, ""},
		{"the whole location", "spec.c[name: foo].image", []writtenTest{{"spec.c[name: foo].image", mustNotExist}}, ""},
		{"quotes do not matter", "spec.c[name: foo].image", []writtenTest{{`"spec".c["name":"foo"]`, mustExist}}, ""},
		{"the empty path says nothing", "spec.a", []writtenTest{{"", mustExist}}, ""},
		{"one condition twice", "spec.a", []writtenTest{{"spec", mustExist}, {"spec", mustExist}}, ""},
		{
			"another path", "spec.c[name: foo].image",
			[]writtenTest{{"spec.volumes", mustExist}},
			"all subpaths must be a prefix of the `location` value of the mutation: subpath \"spec.volumes\" is not a prefix of location \"spec.c[name: foo].image\"",
		},
		{
			"a glob is no prefix of a key", "c[name: foo].image",
			[]writtenTest{{"c[name: *]", mustExist}},
			"all subpaths must be a prefix of the `location` value of the mutation: subpath \"c[name: *]\" is not a prefix of location \"c[name: foo].image\"",
		},
		{
			"both conditions", "spec.a",
			[]writtenTest{{"spec", mustExist}, {"spec", mustNotExist}},
			`conflicting path test conditions: path "spec" is marked both MustExist and MustNotExist`,
		},
		{
			"a part of what must not exist", "spec.a.b",
			[]writtenTest{{"spec.a", mustNotExist}, {"spec.a.b", mustExist}},
			`conflicting path test conditions: path "spec.a.b" is marked MustExist but parent "spec.a" MustNotExist`,
		},
		{
			"the order does not matter", "spec.a.b",
			[]writtenTest{{"spec.a.b", mustExist}, {"spec.a", mustNotExist}},
			`conflicting path test conditions: path "spec.a.b" is marked MustExist but parent "spec.a" MustNotExist`,
		},
		{"the parent exists and the part does not", "spec.a.b", []writtenTest{{"spec.a.b", mustNotExist}, {"spec.a", mustExist}}, ""},
	} {
		t.Run(c.says, func(t *testing.T) {
			got := ""
			if _, err := compileTests(parsed(t, c.location), testsOf(t, c.tests)); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func testsOf(t *testing.T, tests []writtenTest) []pathTest {
	t.Helper()
	var out []pathTest
	for _, w := range tests {
		out = append(out, pathTest{SubPath: parsed(t, w.subPath), Condition: w.condition})
	}
	return out
}
