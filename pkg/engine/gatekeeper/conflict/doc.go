// Package conflict finds mutators whose locations cannot both be right about the
// structure of one kind of objects.
package conflict
