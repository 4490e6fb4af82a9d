// Package evaluate says what policies would change on the objects of a run: what
// every command does that shows changes or makes them.
package evaluate
