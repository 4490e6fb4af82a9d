// Package compare evaluates two sets of policies on the same objects, and says whether
// the objects that come out are the same to a server.
//
// Both sides see each object as it was read once, in one World: with the same clock, seed
// and objects around it. The order of policies and rules plays no part; what is compared
// is the object after all of them. A side is any set of programs, in any languages.
//
// A Comparison runs an evaluation for each side and operation, all of them page by page,
// so that memory does not grow with the number of objects. A Tally counts what it found,
// and on what each rule was exercised: a rule that changed nothing is never called the same.
package compare
