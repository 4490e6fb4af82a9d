// Package evaluation runs compiled programs over objects, and computes for each object the changes and the
// rule behind each.
//
// It is the loop; package engine defines its inputs and results. Prepare collects the effects of triggers of
// mutate-existing rules on other objects, Run visits every object once: a round of all programs, the API
// server's second round, and then those effects. The changed fields, and their last writers, are computed
// here from the states between two steps, so that no dialect can claim a change that did not happen.
package evaluation
