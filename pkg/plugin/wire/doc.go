// Package wire opens what the flags of a command name, and joins it to the parts
// that the command runs: policies, objects, printers, and what writes.
package wire
