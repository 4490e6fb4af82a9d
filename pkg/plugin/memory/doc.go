// Package memory keeps the program within the memory of its machine: it sets the limit
// that the garbage collector works towards, and bounds what is read by what it becomes.
package memory
