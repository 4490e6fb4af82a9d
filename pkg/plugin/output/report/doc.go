// Package report describes a run for the formats of --report: per object the finding
// of each rule, masked and escaped.
//
// A format implements Report; Printer feeds it with the events of a run.
package report
