// Package github writes a run for GitHub Actions: a few annotations as workflow commands, and the rest as the summary of the step.
//
// The runner shows at most ten annotations of a kind for a step. So there is
// one for each rule, however many objects it would change, and the last one stands
// for all rules that are too many.
package github
