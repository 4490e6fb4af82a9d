package cel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// Each of these would run for ages, or fill the memory, were it not stopped.
func TestEvaluationIsBounded(t *testing.T) {
	nested := "true"
	for i := range 6 {
		nested = fmt.Sprintf("range.all(x%d, %s)", i, nested)
	}
	doubled := func(first, join string) []string {
		variables := []string{first}
		for i := range 60 {
			variables = append(variables, fmt.Sprintf(join, i))
		}
		return variables
	}
	for name, c := range map[string]struct {
		variables []string // v0, v1, ...
		mutation  string
		want      string
	}{
		"one expression": {
			variables: []string{"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"},
			mutation:  "Object{metadata: Object.metadata{labels: {'a': string(" + strings.ReplaceAll(nested, "range", "variables.v0") + ")}}}",
			want:      "1000000 units of CEL cost for one expression",
		},
		"lists joined with themselves": {
			variables: doubled("[1]", "variables.v%[1]d + variables.v%[1]d"),
			mutation:  "Object{spec: Object.spec{args: variables.v60}}",
			want:      "100000 elements in one value",
		},
		"lists of themselves": {
			variables: doubled("[dyn(1)]", "[dyn(variables.v%[1]d), dyn(variables.v%[1]d)]"),
			mutation:  "Object{spec: Object.spec{args: variables.v60}}",
			want:      "100000 elements in one value",
		},
		"maps of themselves": {
			variables: doubled("{'a': dyn(1)}", "{'a': dyn(variables.v%[1]d), 'b': dyn(variables.v%[1]d)}"),
			mutation:  "Object{spec: Object.spec{args: variables.v60}}",
			want:      "100000 elements in one value",
		},
		"texts joined with themselves": {
			variables: doubled("'0123456789'", "variables.v%[1]d + variables.v%[1]d"),
			mutation:  "Object{metadata: Object.metadata{labels: {'a': variables.v60}}}",
			want:      "units of CEL cost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(t, cel.Options{})
			for i, v := range c.variables {
				if err := s.Variable(fmt.Sprintf("v%d", i), v); err != nil {
					t.Fatal(err)
				}
			}
			m, err := s.ApplyConfiguration(c.mutation)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = s.Evaluate(t.Context(), input(t), cel.MutationBudget).Mutate(m, builtin)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if elapsed := time.Since(start); elapsed > 30*time.Second {
				t.Errorf("it took %s", elapsed)
			}
		})
	}
}

func TestLimitsOfExpressions(t *testing.T) {
	deep := func(open, inner, end string) string {
		return strings.Repeat(open, 2000) + inner + strings.Repeat(end, 2000)
	}
	for expression, want := range map[string]string{
		deep("(", "1", ")"):                      "is nested more than 250 deep",
		deep("[", "1", "]"):                      "is nested more than 250 deep",
		deep("{1: ", "1", "}"):                   "is nested more than 250 deep",
		deep("size(", "''", ")"):                 "is nested more than 250 deep",
		deep("true ? 1 : ", "1", ""):             "is nested more than 250 deep",
		deep("", "object", ".a"):                 "is nested more than 250 deep",
		deep("1 + ", "1", ""):                    "is nested more than 250 deep",
		deep("(", "", ""):                        "is nested more than 250 deep",
		"'" + strings.Repeat("a", 100_001) + "'": "is longer than 100000 characters",
		strings.Repeat("1 1 ", 2000):             "cannot be read",
	} {
		_, err := newScope(t, cel.Options{}).Compile(expression)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 2000 {
			t.Errorf("%.40q: %v, want %s", expression, err, want)
		}
	}
}

func TestEvaluationCancelled(t *testing.T) {
	s := newScope(t, cel.Options{})
	x, err := s.Condition("true")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Evaluate(ctx, input(t), cel.MatchBudget).Condition(x); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What a condition without names computes is left to its evaluation, which has a deadline: this one takes minutes.
func TestConditionsAreCompiledInNoTime(t *testing.T) {
	newScope(t, cel.Options{}).Conditions([]cel.Source{{Text: "quantity('1e999999999').add(quantity('1')).asApproximateFloat() > 1.0"}})
}
