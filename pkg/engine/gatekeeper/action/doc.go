// Package action is what each kind of mutator writes at the end of its location.
package action
