// Package kyverno evaluates the mutate rules of Kyverno's ClusterPolicy and Policy.
//
// A policy is compiled once into rules. For an object, the rules run by policy name and, within a policy, as
// written, with derived rules last; each sees the object as the previous rule left it.
//
// Rules with mutate.targets change other objects: they become Effects, bound to the matched object (the
// trigger), and run on each of their subjects.
//
// This package has policies, rules, targets and their execution. Its subpackages implement the language:
// selection and conditions (match, pattern), expressions (variables, jmespath) and patches (patching).
package kyverno
