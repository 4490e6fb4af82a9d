// Package output defines the events of a run, and the Printer that shows them.
//
// The commands emit events. The printers are below: human for people, structured for
// programs, and report for the formats of --report; formats chooses among them.
package output
