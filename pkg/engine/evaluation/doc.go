// Package evaluation runs compiled programs over objects, and computes for each
// object what would change and which rule changes it.
//
// It is the loop; what goes in and out is defined in package engine. Prepare
// collects what triggers of mutate-existing rules do to other objects, Run visits
// every object once: a round of all programs, the API server's second round, and
// then those effects. Which fields changed, and who wrote them last, is computed
// here from the states between two steps, so that no dialect can claim a change
// that did not happen.
package evaluation
