// Package preflight finds out, before anything is written, what the user may not
// write, by asking the server's authorizer.
package preflight
