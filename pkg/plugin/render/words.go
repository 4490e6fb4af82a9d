package render

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

// Line makes a text one harmless line: what could act on a terminal, or mislead
// its reader, is shown by codes, and so are line breaks.
func Line(s string) string { return line(s) }

// RuleText names a rule and how it came to apply: "kyverno team-labels/add via b".
func RuleText(r engine.RuleRef) string { return ruleText(r) }

// Counts is the sentence that ends the formats for people: how many objects were
// evaluated and would change, and what went otherwise.
func Counts(s engine.Summary) string { return counts(s) }

// RestartsText says what a run would restart, and "" where that is nothing.
func RestartsText(r engine.Restarts) string { return restarts(r) }
