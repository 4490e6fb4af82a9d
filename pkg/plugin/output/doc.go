// Package output opens the printer of a format: for what a run finds, or for what it
// wrote.
//
// The printers are below it: human for people, structured for programs, report for
// files that other programs read. A printer decides nothing: what is in a Change is
// what it shows. It masks the values of Secrets before anything is formatted, writes
// the same bytes for the same Changes, and keeps no object after it was printed.
package output
