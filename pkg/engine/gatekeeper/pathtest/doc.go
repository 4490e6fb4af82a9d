// Package pathtest decides whether a mutator may go on by what is, or is not,
// along its location.
package pathtest
