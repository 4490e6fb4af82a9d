package junit

import (
	"encoding/xml"
	"strings"
)

// element is one that stands in a test case.
func element(name, kind, message, body string) string {
	start := "      <" + name + " type=" + attribute(kind) + " message=" + attribute(message)
	if body == "" {
		return start + "/>\n"
	}
	return start + ">" + text(body) + "</" + name + ">\n"
}

// attribute is a quoted value. What no XML document may hold becomes U+FFFD.
func attribute(s string) string { return `"` + escaped(s) + `"` }

// text is character data, whose line breaks stay what they are.
func text(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = escaped(lines[i])
	}
	return strings.Join(lines, "\n")
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
