// Package functions is the table of what JMESPath expressions of Kyverno policies
// may call: the standard functions of the language and Kyverno's own, those of
// pkg/engine/jmespath.
//
// A function checks its arguments, pays for its work out of a Budget, and modifies
// nothing that it is given; its result may share parts of the arguments.
package functions
