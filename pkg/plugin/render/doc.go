// Package render prints Changes as diff, summary, names, report, manifests or patches.
//
// A Printer decides nothing: what is in a Change is what it shows. It masks
// Secret values before anything is formatted, writes the same bytes for the same
// Changes, keeps no object after it was printed, and makes control characters in
// names and values harmless on a terminal.
package render
