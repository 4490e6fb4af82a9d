package permission

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// PrintYAML writes manifests as YAML documents. Notes come first, as comments.
func PrintYAML(out io.Writer, objects []any, notes []string) error {
	var b strings.Builder
	for _, n := range notes {
		fmt.Fprintf(&b, "# %s\n", Comment(n))
	}
	for i, o := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		if role, ok := o.(Role); ok {
			role.WriteYAML(&b)
			continue
		}
		content, err := fields(o)
		if err != nil {
			return err
		}
		write(&b, content, "")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// PrintJSON writes manifests as a List, in which no string acts on a terminal, shell or CI runner.
func PrintJSON(out io.Writer, objects []any) error {
	list := struct {
		metav1.TypeMeta `json:",inline"`
		Items           []any `json:"items"`
	}{metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, []any{}}
	for _, o := range objects {
		if role, ok := o.(Role); ok {
			list.Items = append(list.Items, role.Objects()...)
			continue
		}
		content, err := fields(o)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, content)
	}
	content, err := json.MarshalIndent(list, "", "    ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, jsonEscaper.Replace(string(redact.EscapeJSON(content)))+"\n")
	return err
}

// fields returns an object without its status.
func fields(object any) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	delete(out, "status") // Go's types have it even if it is empty
	return out, err
}

// write writes a value in block style, its fields in order. Strings are quoted, unless each line is
// harmless.
func write(b *strings.Builder, value any, margin string) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range order(value) {
			b.WriteString(margin + name + ":")
			writeBelow(b, value[name], margin)
		}
	case []any:
		for _, element := range value {
			var item strings.Builder
			if _, ok := element.(map[string]any); ok {
				write(&item, element, margin+"  ")
			} else {
				writeBelow(&item, element, margin)
			}
			b.WriteString(margin + "- " + strings.TrimLeft(item.String(), " "))
		}
	}
}

// writeBelow writes what follows the name of a field.
func writeBelow(b *strings.Builder, value any, margin string) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteString("\n")
		write(b, value, margin+"  ")
	case []any:
		b.WriteString("\n")
		write(b, value, margin)
	case string:
		b.WriteString(" " + scalar(value, margin+"  ") + "\n")
	default:
		fmt.Fprintf(b, " %v\n", value)
	}
}

// order returns the names of fields in the usual order of manifests.
func order(object map[string]any) []string {
	first := []string{"apiVersion", "kind", "metadata", "name"}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(object)), func(name string) bool {
		return slices.Contains(first, name)
	})
	return append(slices.DeleteFunc(first, func(name string) bool {
		_, ok := object[name]
		return !ok
	}), names...)
}

// scalar returns a string: as a block if it has several harmless lines, else quoted.
func scalar(text, margin string) string {
	if !strings.Contains(text, "\n") || !harmless(text) {
		return Quote(text)
	}
	var b strings.Builder
	b.WriteString("|")
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString("\n")
		if line != "" {
			b.WriteString(margin + line)
		}
	}
	return b.String()
}

// harmless reports whether the lines of a string mean themselves in a block, in a terminal, in a shell that
// they are pasted into, and in the log of a CI runner. It must not begin with a blank, and must end with one
// line break.
func harmless(text string) bool {
	return !strings.ContainsAny(text, "$`!\\\t") && text[0] != ' ' && text[0] != '\n' &&
		strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\n\n") &&
		!strings.Contains(text, "##") && redact.EscapeLines(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return r > '~' })
}
