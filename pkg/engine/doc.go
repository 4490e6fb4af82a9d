// Package engine is the vocabulary of policies that change objects: the inputs and results of an evaluation,
// and the interfaces between its parts.
//
// A Dialect compiles Documents to a Program, which is evaluated on the Targets of a Source. The result is a
// Change for each object, made of Steps: what one rule did to it, or why it did nothing. A Program that is a
// Propagator leaves Effects on objects other than its matches. Package evaluation, below this one, runs them
// in the order of a server.
//
// There is no I/O here: World has everything that an evaluation may ask of its surroundings, and a missing
// capability makes a rule unsupported instead of wrong.
//
// Three rules hold everywhere in this package and below it:
//
//   - Nothing that was handed in is ever modified. A rule that changes an object
//     returns a new one, which may share untouched subtrees with the old one.
//   - A rule that fails is a result (Step.Err); a Go error ends the run.
//   - Dialects report what a rule did to an object as a whole. Package evaluation
//     computes the fields that it changed.
package engine
