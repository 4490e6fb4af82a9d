// Package sarif writes a run as SARIF 2.1.0: a result for each rule that would change an object, or that denies it.
//
// What could not be evaluated is a notification of the tool, not a result. Objects
// that are as the policies want them are counted only: code scanning shows whatever
// is a result as something to fix.
package sarif
