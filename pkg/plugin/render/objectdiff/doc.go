// Package objectdiff compares the two states of a changed object as text for people.
package objectdiff
