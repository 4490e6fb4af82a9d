// Package journal keeps a durable record of a run that writes: what was planned, each
// write before it is attempted, and its outcome.
//
// A journal is an append-only file of JSON Lines. A run that is killed, or loses
// power, leaves at most a torn last line behind; the lines before it say which entries
// are done, failed, in doubt or not begun.
//
// Values of Secrets are left out unless the user asks for them.
package journal
