package structured

import (
	"fmt"
	"io"
)

// WriteList prints items as one object of a kind, as JSON or YAML.
func WriteList[T any](out io.Writer, asYAML bool, kind string, items []T) error {
	if items == nil {
		items = []T{} // an empty list, not null
	}
	text, err := MarshalText(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []T    `json:"items"`
	}{version, kind, items}, asYAML)
	if err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	_, err = io.WriteString(out, text)
	return err
}
