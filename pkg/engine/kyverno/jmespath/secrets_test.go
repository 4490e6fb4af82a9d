package jmespath_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// What expressions make of a value that is hidden is hidden; what only passes it on, or chooses something
// beside it, is not.
func TestHiding(t *testing.T) {
	secret := map[string]any{"name": "db", "data": map[string]any{"k": "***"}}
	data := map[string]any{"hidden": "***", "part": "db://***@host", "name": "web", "secret": secret, "list": []any{"***", "a"}}
	for expr, want := range map[string]any{
		"hidden":                             "***",
		"part":                               "db://***@host",
		"secret.name":                        "db",
		"secret.data":                        map[string]any{"k": "***"},
		"hidden.field":                       "***",
		"hidden[0]":                          "***",
		"hidden[1:]":                         "***",
		"hidden[*].x":                        "***",
		"hidden.*.x":                         "***",
		"hidden[?x].x":                       "***",
		"hidden[]":                           "***",
		"list[1]":                            "a",
		"list[?@ == 'a']":                    "***",
		"[secret][?name == 'db'].data.k":     []any{"***"},
		"hidden || name":                     "***",
		"nothing || hidden":                  "***",
		"name || hidden":                     "web",
		"hidden && name":                     "***",
		"!hidden":                            "***",
		"hidden == 'x'":                      "***",
		"secret != name":                     "***",
		"hidden > `1`":                       "***",
		"length(part)":                       "***",
		"to_upper(name)":                     "WEB",
		"map(&to_upper(@), list)":            "***",
		"map(&name, [secret])":               "***",
		"{a: name, b: hidden}":               map[string]any{"a": "web", "b": "***"},
		"[name, to_upper(hidden)]":           []any{"web", "***"},
		"hidden | @":                         "***",
		"starts_with(hidden, 'x') && name":   "***",
		"join('-', split(hidden, '')) | [0]": "***",
	} {
		compiled, err := jmespath.Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		got, err := compiled.Search(jmespath.New(functionsNow, 1).Hiding(true), data)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", expr, err, diff)
		}
	}
	compiled, _ := jmespath.Compile("length(hidden)")
	if got, err := compiled.Search(jmespath.New(functionsNow, 1), data); got != int64(3) || err != nil {
		t.Errorf("where nothing is hidden, it is a text like others: got %v, %v", got, err)
	}
}
