// Package touched keeps of an object what a change touches.
//
// That is enough to compare the change with another one, to take it back, to print
// it and to know its patch, and it is small: ten thousand of them fit where ten
// thousand objects do not. In files, values of Secrets are left out of it: their
// fields are Withheld.
package touched
