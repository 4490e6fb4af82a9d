package jmespath

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	jsoniter "github.com/json-iterator/go"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Kyverno's functions on objects, lists and encoded data.

func labelMatch(in *Interpreter, args []any) (any, error) {
	wanted, actual := args[0].(map[string]any), args[1].(map[string]any)
	for key := range wanted {
		if value, found := actual[key]; !found || !Equal(in.clock, wanted[key], value) {
			return false, nil
		}
	}
	return true, nil
}

// lookup returns null for a missing key or index.
func lookup(_ *Interpreter, args []any) (any, error) {
	if object, ok := args[0].(map[string]any); ok {
		key, ok := args[1].(string)
		if !ok {
			return nil, errors.New("argument #2 is not of type String")
		}
		return object[key], nil
	}
	if !isNumber(args[1]) {
		return nil, errors.New("argument #2 is not of type Number")
	}
	list := args[0].([]any)
	index, ok := integer(args[1])
	if !ok {
		return nil, fmt.Errorf("argument #2: expected an integer number but got: %v", args[1])
	}
	if index < 0 || index >= int64(len(list)) {
		return nil, nil
	}
	return list[index], nil
}

// items returns an object of two fields for each key of an object, in order, or for each index of a list.
func items(_ *Interpreter, args []any) (any, error) {
	keyName, valueName := args[1].(string), args[2].(string)
	result := []any{}
	add := func(key, value any) {
		item := map[string]any{keyName: key}
		item[valueName] = value // last, so that it wins if both fields have the same name
		result = append(result, item)
	}
	switch v := args[0].(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			add(key, v[key])
		}
	case []any:
		for i, element := range v {
			add(int64(i), element)
		}
	}
	return result, nil
}

// objectFromLists pairs keys with values; keys without a value have null, and the last of equal keys wins.
func objectFromLists(_ *Interpreter, args []any) (any, error) {
	names, elements := args[0].([]any), args[1].([]any)
	object := make(map[string]any, len(names))
	for i, name := range names {
		key, ok := scalarText(name)
		if !ok {
			return nil, errors.New("argument #1 is not of type Array of Strings")
		}
		object[key] = nil
		if i < len(elements) {
			object[key] = elements[i]
		}
	}
	return object, nil
}

func parseJSON(_ *Interpreter, args []any) (any, error) {
	return decode(args[0].(string))
}

func parseYAML(_ *Interpreter, args []any) (any, error) {
	text := args[0].(string)
	if err := limit.Size(decodedSize * len(text)); err != nil {
		return nil, err
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	return decode(string(data))
}

// semverCompare reads an invalid version as 0.0.0, as Kyverno does.
func semverCompare(_ *Interpreter, args []any) (any, error) {
	inRange, err := semver.ParseRange(args[1].(string))
	if err != nil {
		return nil, err
	}
	version, err := semver.Parse(args[0].(string))
	if err != nil {
		version = semver.Version{}
	}
	return inRange(version), nil
}

func imageNormalize(_ *Interpreter, args []any) (any, error) {
	image, err := parseImage(args[0].(string))
	return image["reference"], err
}

// isExternalURL differs on purpose: Kyverno resolves the host's name, which an evaluation may not.
func isExternalURL(_ *Interpreter, _ []any) (any, error) {
	return nil, &engine.UnsupportedError{Err: errors.New("unsupported: it needs to resolve host names over the network")}
}

// ToJSON returns a value's JSON as Kyverno inserts it in strings: encoding/json writes 1e-7, but
// json-iterator 1e-07.
func ToJSON(value any) (string, error) {
	if err := limit.Value(value); err != nil {
		return "", err
	}
	return jsoniter.ConfigCompatibleWithStandardLibrary.MarshalToString(value)
}

// decodedSize bounds decoded JSON or YAML, as a multiple of its source.
const decodedSize = 8

// decode decodes JSON with canonical numbers.
func decode(text string) (any, error) {
	if err := limit.Size(decodedSize * len(text)); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	return canonicalTree(value), nil
}
