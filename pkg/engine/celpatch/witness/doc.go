// Package witness watches what CEL expressions make of the values of Secrets.
//
// A program that is planned with Watch asks for its Witness under the name Name. The
// Witness sees each value that the expression takes from its input, and each that
// a function makes of such values: where one that went in is known to be secret, it
// tells engine.Secrets what came out. What an expression hands on as it is needs no
// witness.
package witness
