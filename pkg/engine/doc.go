// Package engine is the vocabulary of policies that change objects: what goes into
// an evaluation, what comes out, and the seams between.
//
// What goes in are Documents, which a Dialect compiles to a Program, and the
// Targets of a Source. What comes out is a Change for each object, made of Steps:
// what one rule did to it, or why it did nothing. A Program that is a Propagator
// leaves Effects on other objects than those it matches. Package evaluation below
// this one is the loop that brings them together, in the order of a server.
//
// There is no I/O here: all that an evaluation may ask of its surroundings is in
// World, and a capability that World lacks makes a rule unsupported instead of wrong.
//
// Three rules hold everywhere in this package and below it:
//
//   - Nothing that was handed in is ever modified. A rule that changes an object
//     returns a new one, which may share untouched subtrees with the old one.
//   - A rule that fails is a result (Step.Err); a Go error ends the run.
//   - Dialects report what a rule did to an object as a whole. Which fields it
//     changed is for package evaluation to find out.
package engine
