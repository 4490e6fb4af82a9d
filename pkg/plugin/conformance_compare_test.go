package plugin_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// bareLetters are what the corpus means as text and writes without quotes, while
// Kubernetes' reader takes it for true and false.
var bareLetters = regexp.MustCompile(`(?m)(:) ([yYnN])$`)

// objects reads the objects that end changed, by kind, namespace and name, in
// the form in which the corpus compares them, undecided ones left out.
func (c *replayCase) objects(path string, stdin io.Reader) (map[string]any, error) {
	if path != "-" {
		path, stdin = "-", bytes.NewReader(bareLetters.ReplaceAll(c.Files[path], []byte(`$1 "$2"`)))
	}
	objects := map[string]any{}
	reader := &input.Reader{Stdin: stdin}
	for d, err := range reader.Read(context.Background(), input.Files{Paths: []string{path}}) {
		if errors.Is(err, input.ErrEmptyStream) {
			break // nothing was printed
		}
		if err != nil {
			return nil, err
		}
		if c.isUndecided(d.Object()) {
			continue
		}
		object := comparableForm(d.Object())
		key := fmt.Sprintf("%s %s/%s", d.Key.GroupKind, object.GetNamespace(), object.GetName())
		if _, twice := objects[key]; twice {
			return nil, fmt.Errorf("%s stands there twice", key)
		}
		objects[key] = object.Object
	}
	return objects, nil
}

func undecidedName(u *unstructured.Unstructured) string {
	return u.GetNamespace() + "/" + u.GetKind() + "/" + u.GetName()
}

// isUndecided reports whether the engine gave no answer for the object. A missing
// namespace is "default", as in the objects that are compared.
func (c *replayCase) isUndecided(u *unstructured.Unstructured) bool {
	name := undecidedName(u)
	return slices.Contains(c.Undecided, name) || slices.Contains(c.Undecided, "default"+name)
}

// comparableForm brings an object into the corpus' form: a missing namespace is
// "default", null is absent, numbers count by value, lists of named elements
// are sorted, and the engines' own annotations are left out.
func comparableForm(u *unstructured.Unstructured) *unstructured.Unstructured {
	content, _ := normal(u.Object).(map[string]any)
	out := &unstructured.Unstructured{Object: content}
	if out.GetNamespace() == "" {
		out.SetNamespace("default")
	}
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		if key == "policies.kyverno.io/last-applied-patches" || strings.HasPrefix(key, "gatekeeper.sh/") {
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return out
}

func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if value != nil {
				out[key] = normal(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		if allNamed(out) {
			slices.SortFunc(out, func(a, b any) int { return cmp.Compare(nameOf(a), nameOf(b)) })
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v)
		}
	}
	return v
}

// allNamed reports whether all elements have a name, each another one.
func allNamed(list []any) bool {
	seen := map[string]bool{}
	for _, element := range list {
		name := nameOf(element)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

func nameOf(element any) string {
	mapping, _ := element.(map[string]any)
	name, _ := mapping["name"].(string)
	return name
}
