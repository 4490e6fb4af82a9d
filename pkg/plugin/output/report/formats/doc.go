// Package formats opens the reports that a user names with --report, and writes
// all of them beside what the run prints.
package formats
