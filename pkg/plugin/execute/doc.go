// Package execute makes the changes that tasks want: each is verified before any is
// written, agreed to, and kept in a journal.
//
// What is to be written, and why, is up to whoever makes the tasks: a preview, a
// plan, a journal, or an undo. What came of it is told as results and as a Tally;
// exit codes are decided elsewhere.
package execute
