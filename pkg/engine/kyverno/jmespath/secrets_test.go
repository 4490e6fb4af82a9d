package jmespath_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// notes are Secrets that know what mentions "s3cret", and record what is reported to them.
type notes struct{ told []string }

func (*notes) Any() bool            { return true }
func (*notes) Known(value any) bool { return strings.Contains(fmt.Sprint(value), "s3cret") }
func (n *notes) Derive(result any, from ...any) {
	if n.Known(from) {
		n.told = append(n.told, fmt.Sprint(result))
	}
}

func TestFunctionsMarkDerivedSecrets(t *testing.T) {
	data := map[string]any{
		"password": "s3cret-word", "encoded": "czNjcmV0", "name": "web", "list": []any{"s3cret", "a"}, "object": map[string]any{"k": "s3cret"},
	}
	for expr, want := range map[string][]string{
		"to_upper(password)":                           {"S3CRET-WORD"},
		"truncate(password, `3`)":                      {"s3c"},
		"sha256(password)":                             {"6556e59b7e927cefda7b33da179faa0761cd88173fef6849af24076e0fd79461"},
		"split(password, '-')":                         {"[s3cret word]"},
		"join('', list)":                               {"s3creta"},
		"to_upper(join('', list))":                     {"s3creta", "S3CRETA"},
		"map(&to_upper(@), list)":                      {"S3CRET"},
		"to_string(object)":                            {`{"k":"s3cret"}`},
		"length(password)":                             {"11"},
		"parse_json(password)":                         {"invalid character 's' looking for beginning of value"},
		"base64_decode(encoded)":                       nil,
		"to_upper(name)":                               nil,
		"parse_json(name)":                             nil,
		"password || to_upper(name)":                   nil,
		"is_external_url(password)":                    nil,
		"truncate(password, 'x')":                      nil, // never called
		"keys(object)":                                 nil,
		"values(object)":                               nil,
		"items(object, 'key', 'value')":                nil,
		"merge(object, {a: name})":                     nil,
		"lookup(object, 'k')":                          nil,
		"not_null(password)":                           nil,
		"to_array(password)":                           nil,
		"sort(list)":                                   nil,
		"sort_by([object], &k)":                        nil,
		"max(list)":                                    nil,
		"min(list)":                                    nil,
		"max_by([object], &k)":                         nil,
		"min_by([object], &k)":                         nil,
		"object_from_lists(list, list)":                nil,
		"type(password)":                               nil,
		"map(&@, list)":                                nil,
		"map(&parse_json(@), list)":                    {"invalid character 's' looking for beginning of value"},
		"replace_all(name, 'w', password) | length(@)": {"s3cret-wordeb", "13"},
	} {
		t.Run(expr, func(t *testing.T) {
			compiled, err := jmespath.Compile(expr)
			if err != nil {
				t.Fatal(err)
			}
			var secrets notes
			_, failed := compiled.Search(jmespath.New(functionsNow, 1).WithSecrets(&secrets), data)
			if diff := cmp.Diff(want, secrets.told); diff != "" {
				t.Errorf("told (-want +got):\n%s\n(the error is %v)", diff, failed)
			}
		})
	}
}
