package translate_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

func readYAML[T any](t testing.TB, name string) T {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// readObjects reads objects with whole numbers as a server has them.
func readObjects(t testing.TB) []map[string]any {
	t.Helper()
	all := readYAML[[]map[string]any](t, "objects.yaml")
	for i := range all {
		all[i] = whole(all[i]).(map[string]any)
	}
	return all
}

func whole(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	}
	return value
}

// TestQueries evaluates queries and their translations on the same Pods.
func TestQueries(t *testing.T) {
	b := newBoth(t, readObjects(t))
	archive, err := txtar.ParseFile("testdata/queries.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		class := file.Name
		for query := range strings.Lines(string(file.Data)) {
			query = strings.TrimSpace(query)
			t.Run(strings.ReplaceAll(query, "/", "|"), func(t *testing.T) {
				for _, known := range []bool{true, false} {
					for _, language := range []translate.Language{translate.MutatingPolicy, translate.MutatingAdmissionPolicy} {
						err := b.query(t, language, known, "{{ "+query+" }}")
						var refused *translate.UnsupportedError
						wants := class == "both" || class == "policies" && language == translate.MutatingPolicy
						switch {
						case err != nil && !errors.As(err, &refused):
							t.Errorf("another error: %v", err)
						case known && (err == nil) != wants:
							t.Errorf("translated to language %d: %v", language, err)
						}
					}
				}
			})
		}
	}
}

// Each step of a query may write what is before it twice.
func TestQueriesThatDouble(t *testing.T) {
	for _, step := range []string{" | join('', [@, @])", " | {a: @, b: @} | join('', [a, b])"} {
		err := translate.Try(func() {
			translate.NewScope(translate.Options{}).Query("request.object.data.a" + strings.Repeat(step, 40))
		})
		var refused *translate.UnsupportedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "too long") {
			t.Errorf("%s: got %v", step, err)
		}
	}
}

// CEL's type checker takes the one of two optionals for a string, and a list holds elements of one type.
func TestChosenOptionalsInLists(t *testing.T) {
	b := newBoth(t, readObjects(t))
	query := "{{ not_null(request.object.spec.nodeSelector.disk && request.object.metadata.annotations.size, '') }}"
	if err := b.query(t, translate.MutatingAdmissionPolicy, true, map[string]any{"l": []any{"x", query}}); err != nil {
		t.Error(err)
	}
}
