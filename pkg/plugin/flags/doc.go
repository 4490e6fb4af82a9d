// Package flags defines the command line: the flags that commands share, their defaults,
// and what cannot be meant by them.
package flags
