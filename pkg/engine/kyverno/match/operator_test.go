package match_test

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// operatorCase is a key, an operator and a value, and whether the operator holds.
type operatorCase struct {
	key      string
	operator match.Operator
	value    string
	want     bool
}

// The operators, family by family.
func TestHolds(t *testing.T) {
	for _, c := range []operatorCase{
		// Compares scalars of one type, and numbers with their strings.
		{`true`, "Equals", `true`, true},
		{`true`, "Equals", `"true"`, false},
		{`"true"`, "Equals", `true`, false},
		{`1`, "Equals", `1`, true},
		{`1`, "Equals", `1.0`, true},
		{`1`, "Equals", `1.5`, false},
		{`1`, "Equals", `"1"`, true},
		{`1`, "Equals", `"x"`, false},
		{`"1"`, "Equals", `1`, false},
		{`"a"`, "Equals", `"a"`, true},
		{`"abc"`, "Equals", `"a*"`, true},
		{`"a*"`, "Equals", `"abc"`, false},
		{`""`, "Equals", `""`, true},
		{`"a"`, "Equal", `"a?"`, false},
		{`"ab"`, "Equal", `"a?"`, true},
		// Equals amounts.
		{`"1h"`, "Equals", `"60m"`, true},
		{`"1h"`, "Equals", `3600`, true},
		{`"0"`, "Equals", `"0s"`, false},
		{`"1000m"`, "Equals", `"1"`, true},
		{`"1Gi"`, "Equals", `"1024Mi"`, true},
		{`"1Gi"`, "Equals", `"1G"`, false},
		{`"1"`, "Equals", `"*"`, false},
		{`"1"`, "Equals", `""`, false},
		{`"1.2.3"`, "Equals", `"1.*"`, true},
		// Equals maps and lists.
		{`{"a": 1}`, "Equals", `{"a": 1.0}`, true},
		{`["a"]`, "Equals", `["a"]`, true},
		{`["a"]`, "Equals", `"a"`, false},
		// Has the opposite of Equals, but for null, which satisfies no operator.
		{`true`, "NotEquals", `"true"`, true},
		{`"abc"`, "NotEquals", `"a*"`, false},
		{`"1"`, "NotEquals", `"*"`, true},
		{`"1h"`, "NotEqual", `"60m"`, false},
		{`"a"`, "NotEquals", `null`, true},
		{`null`, "NotEquals", `"a"`, false},
		{`null`, "Equals", `null`, false},
		{`null`, "AnyNotIn", `["a"]`, false},
		{`null`, "LessThan", `1`, false},
		// In one key.
		{`"a"`, "AnyIn", `["a", "b"]`, true},
		{`"c"`, "AnyIn", `["a", "b"]`, false},
		{`"abc"`, "AnyIn", `["a*"]`, true},
		{`"a*"`, "AnyIn", `["abc"]`, true},
		{`1`, "AnyIn", `[1, 2]`, true},
		{`1000000`, "AnyIn", `["1000000"]`, true},
		{`1.5`, "AllIn", `[1.5]`, true},
		{`"c"`, "AnyNotIn", `["a", "b"]`, true},
		{`"a"`, "AnyNotIn", `["a"]`, false},
		{`"abc"`, "AllNotIn", `["a*"]`, false},
		{`"abc"`, "AnyIn", `"a*"`, true},
		{`"b"`, "AnyIn", `"[\"a\", \"b\"]"`, true},
		{`"b*"`, "AnyIn", `"[\"bc\"]"`, false},
		{`"c"`, "AnyNotIn", `"[\"a\"]"`, true},
		{`5`, "AnyIn", `"1-10"`, true},
		{`"512Mi"`, "AnyIn", `"100Mi-1Gi"`, true},
		{`50`, "AllNotIn", `"1-10"`, true},
		// Has values that are no list of strings: they satisfy neither an operator.
		{`"a"`, "AnyIn", `"10"`, false},
		{`"a"`, "AnyNotIn", `"10"`, false},
		{`"a"`, "AllNotIn", `{"a": 1}`, false},
		{`"a"`, "AnyNotIn", `1`, false},
		{`{"a": 1}`, "AnyNotIn", `["a"]`, false},
		// In list of keys.
		{`["a", "x"]`, "AnyIn", `["a", "b"]`, true},
		{`["a", "x"]`, "AllIn", `["a", "b"]`, false},
		{`["a", "b"]`, "AllIn", `["b", "a"]`, true},
		{`["a", "x"]`, "AnyNotIn", `["a", "b"]`, true},
		{`["a", "x"]`, "AllNotIn", `["a", "b"]`, false},
		{`["abc"]`, "AllIn", `["a*"]`, true},
		{`["a*"]`, "AllNotIn", `["abc"]`, false},
		{`[1, 2]`, "AnyIn", `["2"]`, true},
		{`[1, 2]`, "AnyIn", `2`, true},
		{`[2]`, "AllIn", `2`, false},
		{`[1]`, "AnyNotIn", `2`, true},
		{`[1]`, "AllNotIn", `2`, false},
		{`["a"]`, "AnyNotIn", `"a"`, false},
		{`["ab"]`, "AnyIn", `"[\"a*\"]"`, true},
		{`["a"]`, "AnyIn", `"10"`, false},
		{`["a"]`, "AnyNotIn", `"10"`, false},
		{`[1, 20]`, "AnyIn", `"1-10"`, true},
		{`[1, 20]`, "AllIn", `"1-10"`, false},
		{`[1, 20]`, "AnyNotIn", `"1-10"`, true},
		{`[1, 2]`, "AnyNotIn", `"1-10"`, false},
		{`[1, 20]`, "AllNotIn", `"1-10"`, false},
		{`[]`, "AllIn", `["a"]`, true},
		{`[]`, "AnyIn", `["a"]`, false},
		{`[]`, "AllNotIn", `["a"]`, true},
		{`[]`, "AnyNotIn", `["a"]`, false},
		// Has In and NotIn, which know no ranges, and are exact for lists.
		{`"abc"`, "In", `["a*"]`, true},
		{`1`, "In", `["1"]`, true},
		{`"a"`, "NotIn", `["a"]`, false},
		{`5`, "In", `"1-10"`, false},
		{`["ab"]`, "In", `["a*"]`, false},
		{`["a", "x"]`, "NotIn", `["a"]`, true},
		{`["a"]`, "NotIn", `[1]`, false},
		{`[1]`, "In", `["1"]`, true},
		// Order.
		{`2`, "GreaterThan", `1`, true},
		{`1`, "GreaterThanOrEquals", `1.0`, true},
		{`1`, "LessThan", `"1.5"`, true},
		{`1.5`, "LessThanOrEquals", `1`, false},
		{`"10"`, "GreaterThan", `9`, true},
		{`"1Gi"`, "GreaterThan", `"1000Mi"`, true},
		{`"100m"`, "LessThan", `"1"`, true},
		{`"1h"`, "GreaterThan", `"59m"`, true},
		{`"1h"`, "GreaterThan", `3600`, false},
		{`3601`, "GreaterThan", `"1h"`, true},
		{`"3601"`, "GreaterThan", `"1h"`, true},
		{`"3600.5"`, "GreaterThan", `"1h"`, false},
		{`"0"`, "LessThan", `"1h"`, true},
		{`"1.10.0"`, "GreaterThan", `"1.9.0"`, true},
		{`"1.0.0-rc1"`, "LessThan", `"1.0.0"`, true},
		{`"a"`, "GreaterThan", `"b"`, false},
		{`[1]`, "LessThan", `2`, false},
		{`true`, "LessThan", `2`, false},
		{`1`, "LessThan", `null`, false},
		// Order durations.
		{`"1h"`, "DurationGreaterThan", `"59m"`, true},
		{`"1h"`, "DurationGreaterThanOrEquals", `3600`, true},
		{`10`, "DurationLessThan", `"11s"`, true},
		{`10`, "DurationLessThanOrEquals", `9.5`, false},
		{`"10"`, "DurationLessThan", `"11s"`, false},
		{`true`, "DurationLessThan", `1`, false},
	} {
		t.Run(c.key+" "+string(c.operator)+" "+c.value, func(t *testing.T) {
			if got := c.operator.Holds(nil, decode(t, c.key), decode(t, c.value)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOperatorsIgnoreCase(t *testing.T) {
	for name, want := range map[string]match.Operator{"anyin": match.AnyIn, "GREATERTHAN": "GreaterThan", "Lt": ""} {
		if o, err := match.ParseOperator(name); o != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", name, o, err)
		}
	}
}
