// Package formats opens the printers of a run: that of a format of -o, and the reports
// that are named with --report.
package formats
