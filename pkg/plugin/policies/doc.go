// Package policies describes compiled policies before there is any object: what
// they match, change and read, and what is wrong with them.
package policies
