// Package interrupt ends the process soon after Ctrl-C or SIGTERM, wherever it is.
package interrupt
