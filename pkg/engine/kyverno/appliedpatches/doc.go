// Package appliedpatches keeps the annotation that tells, on the targets of
// mutate-existing rules, what each rule changed there last.
//
// Kyverno wrote it up to 1.10 (pkg/utils/annotations.go): a YAML map with a line
// for each rule,
//
//	add-sec-rule.add-sec.kyverno.io: added /spec/template/spec/containers/0/securityContext
//
// which names the last operation and path of the rule's patch alone.
package appliedpatches
