package library

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// codec reads and writes JSON and YAML as Kyverno does, with numbers that are
// doubles, but reads no more than a server would hold.
type codec struct{}

// Unmarshal reads JSON.
func (codec) Unmarshal(content []byte) (any, error) {
	if err := checkContent(content); err != nil {
		return nil, fmt.Errorf("json.unmarshal: %w", err)
	}
	var v any
	if err := json.Unmarshal(content, &v); err != nil {
		return nil, fmt.Errorf("json.unmarshal: %w", err)
	}
	return v, nil
}

// Marshal writes JSON, keys in order.
func (codec) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

// Parse reads YAML. The parser refuses aliases that multiply.
func (codec) Parse(content []byte) (any, error) {
	if err := checkContent(content); err != nil {
		return nil, fmt.Errorf("yaml.parse: %w", err)
	}
	var v any
	if err := yaml.Unmarshal(content, &v); err != nil {
		return nil, fmt.Errorf("yaml.parse: %w", err)
	}
	return v, nil
}

func checkContent(content []byte) error {
	if len(content) > maxUnpacked {
		return &limit.Error{What: "bytes of text to parse", Max: maxUnpacked}
	}
	return nil
}
