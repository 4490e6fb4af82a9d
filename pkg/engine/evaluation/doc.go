// Package evaluation runs compiled programs over objects, and says of each object
// what would change and which rule does it.
//
// It is the loop, and package engine the words for what goes in and out. Prepare
// collects what triggers of mutate-existing rules do to other objects, Run visits
// every object once: a round of all programs, the API server's second round, and
// then those effects. Which fields changed, and who wrote them last, is computed
// here from the states between two steps, so that no dialect can claim a change
// that did not happen.
package evaluation
