package kyverno

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// metadataPaths are the labels and annotations of an object and of its Pod template.
//
//nolint:gochecknoglobals // an immutable table
var metadataPaths = [][]string{
	{"metadata", "labels"},
	{"metadata", "annotations"},
	{"spec", "template", "metadata", "labels"},
	{"spec", "template", "metadata", "annotations"},
	{"spec", "jobTemplate", "spec", "template", "metadata", "labels"},
	{"spec", "jobTemplate", "spec", "template", "metadata", "annotations"},
}

// quoteMetadata turns labels and annotations that a JSON patch wrote as bare
// booleans or numbers into strings, the only values that the server takes there.
// Strategic merge does the same on its own.
func quoteMetadata(object map[string]any) (map[string]any, []engine.Warning) {
	var warnings []engine.Warning
	for _, path := range metadataPaths {
		found, _, _ := unstructured.NestedFieldNoCopy(object, path...)
		values := mapping(found)
		fixed, noted := quoteValues(values, strings.Join(path, "."))
		if len(noted) == 0 {
			continue
		}
		object = withValue(object, path, fixed)
		warnings = append(warnings, noted...)
	}
	return object, warnings
}

// quoted is what a patch made of an object, its labels and annotations as strings.
func quoted(before, after map[string]any, notIdempotent string) patchResult {
	if diff.Shared(after, before) {
		return patchResult{Object: before}
	}
	object, warnings := quoteMetadata(after)
	return patchResult{Object: object, Warnings: warnings, NotIdempotent: notIdempotent}
}

func quoteValues(values map[string]any, field string) (map[string]any, []engine.Warning) {
	keys := unquoted(values)
	if len(keys) == 0 {
		return values, nil
	}
	var warnings []engine.Warning
	values = maps.Clone(values)
	for _, key := range keys {
		quoted, _ := bare(values[key])
		values[key] = quoted
		warnings = append(warnings, engine.Warning(fmt.Sprintf(
			"%s %s is written without quotes; it is taken as the string %q", field, key, quoted)))
	}
	return values, warnings
}

// unquoted lists the keys whose values are bare, in order.
func unquoted(values map[string]any) []string {
	var keys []string
	for key, value := range values {
		if _, ok := bare(value); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func bare(value any) (string, bool) {
	switch v := value.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// withValue returns the object with a value set; only the maps on the way are copied. The path exists.
func withValue(object map[string]any, path []string, value any) map[string]any {
	if len(path) > 1 {
		value = withValue(mapping(object[path[0]]), path[1:], value)
	}
	return diff.With(object, path[0], value)
}
