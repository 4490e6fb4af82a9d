// Package report says what came of each rule on each object, in the words that the reports for programs share.
//
// The packages below it write these words in the formats of other programs. Each
// has a New that takes render.Options and returns a render.Printer; each masks the
// values of Secrets, makes what could act on its reader harmless in the way of its
// format, writes the same bytes for the same run, and holds a bounded part of the
// run in memory, however large that is. Those that can tell what a run wrote write
// that as Results.
package report
