// Package kyverno evaluates the mutate rules of Kyverno's ClusterPolicy and
// Policy.
//
// A policy is read once, into rules whose match blocks, expressions, patches and
// context entries are compiled. For an object, the rules run in the order of
// policy names and, inside a policy, as written, those derived for Pod
// controllers last; each sees what the rule before it made of the object.
//
// Rules with mutate.targets do not change what they match: they become Effects,
// bound to the object that the rule matched (the trigger), and are run on each of
// their subjects.
//
// The package itself has policies, rules, their targets and derived rules, the
// program, and the execution of a rule on an object. Each part of the language is
// a package below it: which objects a rule is about and what has to hold (match,
// pattern), what its expressions see (variables, jmespath, contextentry), and what
// it changes (strategicmerge, jsonpatch, legacy).
package kyverno
