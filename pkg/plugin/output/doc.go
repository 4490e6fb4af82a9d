// Package output says what a run can tell (its events), and what shows them (a
// Printer).
//
// The commands emit events. The printers are below: human for people, structured for
// programs, and report for the formats of --report; formats chooses among them.
package output
