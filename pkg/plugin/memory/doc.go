// Package memory keeps the program within the memory of its machine: it sets the limit
// that the garbage collector works towards.
package memory
