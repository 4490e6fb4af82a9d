// Package report describes what came of each rule on each object, in the words that
// the reports for programs share. The packages below it write them in the formats of
// other programs. Each masks the values of Secrets, escapes what its reader would act
// on, writes the same bytes for the same run, and holds a bounded part of the run in
// memory.
package report
