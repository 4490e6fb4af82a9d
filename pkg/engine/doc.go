// Package engine evaluates compiled mutation policies on objects and says, for
// every object, what would change and which rule of which policy does it.
//
// It holds the vocabulary (Document, Target, Step, Change), the seams that a
// policy language plugs into (Dialect, Program, Propagator, Effect) and the
// loop (Evaluation). It does no I/O of its own: all that an evaluation may ask
// of its surroundings is in World, and a capability that World lacks makes a
// rule unsupported instead of wrong.
//
// Three rules hold everywhere in this package and below it:
//
//   - Nothing that was handed in is ever modified. A rule that changes an object
//     returns a new one, which may share untouched subtrees with the old one.
//   - A rule that fails is a result (Step.Err); a Go error ends the run.
//   - Dialects report what a rule did to an object as a whole. Which fields
//     changed, and who wrote them last, is computed here from neighbouring
//     Steps, so that no dialect can claim a change that did not happen.
package engine
