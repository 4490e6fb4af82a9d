package structured

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
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

// WriteNames prints names as -o name does, each on a line of its own.
func WriteNames(out io.Writer, names ...string) error {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(redact.Escape(name, "") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
