// Package autogen rewrites what a MutatingPolicy says of Pods into what it says
// of the controllers that create them.
package autogen
