// Package compare evaluates two sets of policies on the same objects, and reports whether the resulting
// objects are equivalent to a server.
//
// Both sides see each object as it was read once, in one World: with the same clock, seed and related
// objects. Only the final object is compared, not the order of policies and rules. A side is any set of
// programs, in any languages.
//
// A Comparison evaluates each side for each operation page by page, so that memory does not grow with the
// number of objects. A Tally counts the results and the objects that exercised each rule: a rule that changed
// nothing is never reported as the same.
package compare
