// Package grouping puts together what is the same for many objects, in bounded memory.
package grouping
