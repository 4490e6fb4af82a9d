package document

import (
	"fmt"
	"io"
)

// List prints items as one object of a kind, as JSON or YAML.
func List[T any](out io.Writer, asYAML bool, kind string, items []T) error {
	if items == nil {
		items = []T{} // an empty list, not null
	}
	text, err := Text(struct {
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
