package engine

import "regexp"

// templates matches what the templates of Helm and its like leave in a manifest: "{{ .Values.x }}", "{{ include",
// "{{`", "{{- if", "[[ include".
var templates = regexp.MustCompile("(?:\\{\\{|\\[\\[)-?\\s*(?:`|\\.(?:Values|Release|Chart|Capabilities|Files)\\b|(?:include|template|if|range|with|define|end|toYaml)\\b\\s*[^\\s|.(&=!<>]|end\\s*-?(?:\\}\\}|\\]\\]))")

// TemplateHint says what to do with a text that LooksLikeTemplate.
const TemplateHint = "this looks like a template that was not rendered: write what \"helm template\" prints to a file, and use that"

// LooksLikeTemplate reports whether a text holds what Helm, or a tool like it, would have replaced.
func LooksLikeTemplate(text string) bool { return templates.MatchString(text) }
