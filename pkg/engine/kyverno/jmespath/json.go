package jmespath

import (
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// jsonText is a value's JSON, with characters escaped as encoding/json does by default.
func jsonText(value any) (string, error) {
	if err := limit.Value(value); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// decodedSize is how many times its text JSON or YAML may take when it is decoded.
const decodedSize = 8

// decode reads JSON. Its numbers are canonical.
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
