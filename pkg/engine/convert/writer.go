package convert

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// writer prints manifests for people, with expressions in blocks.
type writer struct{ b strings.Builder }

func (w *writer) line(level int, lines ...string) {
	for _, text := range lines {
		w.b.WriteString(strings.Repeat("  ", level) + text + "\n")
	}
}

// comment prints a comment. Names and reasons come from users: nothing in them may end the line.
func (w *writer) comment(level int, text string) {
	w.line(level, "# "+strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text))
}

// misleading reports whether YAML allows a character that is invisible or a terminal control.
func misleading(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// escaped is a value as JSON, with such characters as YAML escapes.
func escaped(v any) (string, error) {
	text, err := json.Marshal(v)
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String(), err
}

// scalar is a YAML string, quoted where it would be read as another type.
func scalar(text string) string {
	out, err := yaml.Marshal(text)
	if err != nil || misleading(string(out)) || strings.Contains(strings.TrimSuffix(string(out), "\n"), "\n") {
		return strconv.Quote(text)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// value prints a non-empty field of any type.
func (w *writer) value(level int, name string, v any) {
	out, err := yaml.Marshal(map[string]any{name: v})
	if empty := strings.TrimSpace(string(out)); err != nil || empty == name+": null" || empty == name+": {}" {
		return
	}
	if misleading(string(out)) {
		if text, err := escaped(v); err == nil {
			w.line(level, name+": "+text)
		}
		return
	}
	for line := range strings.Lines(string(out)) {
		w.b.WriteString(strings.Repeat("  ", level) + line)
	}
}

func flow(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = scalar(v)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (w *writer) resourceRules(level int, rules []resourceRule) {
	w.line(level, "resourceRules:")
	for _, r := range rules {
		w.line(level+1, "- apiGroups: "+flow(r.Groups), "  apiVersions: "+flow(r.Versions),
			"  operations: "+flow(r.Operations), "  resources: "+flow(r.Resources))
	}
}

func (w *writer) expressions(level int, field string, all []named) {
	if len(all) == 0 {
		return
	}
	w.line(level, field+":")
	for _, n := range all {
		w.line(level+1, "- name: "+scalar(n.name))
		w.expression(level+2, "expression", n.cel)
	}
}

func (w *writer) expression(level int, field string, cel expr.Expr) {
	w.line(level, field+": |-")
	w.line(level+1, strings.Split(expr.Format(cel, expr.Width-2*(level+1)), "\n")...)
}

func (w *writer) mutation(m *mutation) {
	for _, text := range []string{m.comment, m.note} {
		if text != "" {
			w.comment(2, text)
		}
	}
	if m.apply {
		w.line(2, "- patchType: ApplyConfiguration", "  applyConfiguration:")
	} else {
		w.line(2, "- patchType: JSONPatch", "  jsonPatch:")
	}
	w.expression(4, "expression", m.expression())
}
