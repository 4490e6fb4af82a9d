// Package render chooses the printer that shows what a run finds, or what it wrote, in the format that the user asks for.
//
// The formats for people are below it in human, those for programs in machine, and
// both for what was written in results. A printer decides nothing: what is in a
// Change is what it shows. It masks Secret values before anything is formatted,
// writes the same bytes for the same Changes, keeps no object after it was printed,
// and makes control characters in names and values harmless on a terminal.
package output
