// Package journal keeps the record of a run that writes, durable at every moment:
// what was planned, each write before it is tried, and what came of it after.
//
// A journal is a file of JSON Lines that only grows. A run that ends at any point,
// by kill or by power, leaves at most a torn last line behind; what was written
// before it says which entries are done, failed, in doubt or not begun.
//
// Values of Secrets are left out, unless the user wants them in.
package journal
