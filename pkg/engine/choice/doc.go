// Package choice says which objects a run evaluates: those that both the
// policies' selections and the user's scope name.
//
// A live cluster and a snapshot ask it the same questions, so that a policy
// sees the same objects in both.
package choice
