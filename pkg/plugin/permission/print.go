package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// WriteYAML writes the role and its binding. A marshaller would write no comments; every string is JSON's,
// which YAML reads as the same string except for surrogates.
func (r Role) WriteYAML(b *strings.Builder) {
	r.head(b, r.kind())
	b.WriteString("rules:\n")
	for _, rule := range r.Rules {
		fmt.Fprintf(b, "  # %s\n", Comment(strings.Join(rule.Why, "; ")))
		sign := "-"
		for _, f := range rule.fields() {
			fmt.Fprintf(b, "  %s %s: [%s]\n", sign, f.name, texts(f.values))
			sign = " "
		}
	}
	if len(r.Subjects) > 0 {
		b.WriteString("---\n")
		r.binding(b)
	}
}

// head writes the beginning of the role and its binding.
func (r Role) head(b *strings.Builder, kind string) {
	fmt.Fprintf(b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s\n", kind, Quote(r.Name))
	if r.Namespace != "" {
		fmt.Fprintf(b, "  namespace: %s\n", Quote(r.Namespace))
	}
}

// binding writes the binding of the role.
func (r Role) binding(b *strings.Builder) {
	r.head(b, r.kind()+"Binding")
	fmt.Fprintf(b, "roleRef:\n  apiGroup: %s\n  kind: %s\n  name: %s\nsubjects:\n", rbacv1.GroupName, r.kind(), Quote(r.Name))
	for _, s := range r.Subjects {
		fmt.Fprintf(b, "  - kind: %s\n", s.Kind)
		if s.APIGroup != "" {
			fmt.Fprintf(b, "    apiGroup: %s\n", s.APIGroup)
		}
		fmt.Fprintf(b, "    name: %s\n", Quote(s.Name))
		if s.Namespace != "" {
			fmt.Fprintf(b, "    namespace: %s\n", Quote(s.Namespace))
		}
	}
}

// field is a field of a rule with its values.
type field struct {
	name   string
	values []string
}

// fields returns the non-empty fields in the order of output.
func (r Rule) fields() []field {
	return slices.DeleteFunc([]field{
		{"nonResourceURLs", r.NonResourceURLs},
		{"apiGroups", r.APIGroups},
		{"resources", r.Resources},
		{"resourceNames", r.ResourceNames},
		{"verbs", r.Verbs},
	}, func(f field) bool { return len(f.values) == 0 })
}

func texts(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = Quote(v)
	}
	return strings.Join(quoted, ", ")
}

// Quote returns a quoted YAML string that acts on no terminal, shell or CI runner.
func Quote(value string) string {
	quoted, _ := json.Marshal(value)                              // a string has no way to fail
	return jsonEscaper.Replace(redact.Escape(string(quoted), "")) // with escapes that YAML has
}

// Characters that a shell acts on in a here-document, or in pasted text by its history; and the start of
// commands to CI runners.
var (
	jsonEscaper    = strings.NewReplacer("$", `\u0024`, "`", `\u0060`, "!", `\u0021`, `\\`, `\u005c`, "##", `#\u0023`) //nolint:gochecknoglobals // an immutable table
	commentEscaper = strings.NewReplacer("$", `\x24`, "`", `\x60`, "!", `\x21`, `\`, `\x5c`)                           //nolint:gochecknoglobals // an immutable table
)

// Comment returns a string as a comment, of which no shell expands a part.
func Comment(s string) string {
	return redact.EscapeLine(commentEscaper.Replace(strings.Join(strings.Fields(s), " ")))
}
