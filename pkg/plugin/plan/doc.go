// Package plan keeps what a preview found, so that exactly that can be applied
// later, or shown again without a cluster.
//
// A Plan is one JSON document: the Run says on which cluster, with which policies
// and by which choice of objects it was made, so that it can be repeated; an Entry
// says of one object what it was like and what is to become of it. Its Partial
// part holds no more of the object than what changes, and tells whole lists from
// single elements, so that a change can be compared, undone and printed without
// the object.
//
// Values of Secrets are in none of it. A field that has one is Withheld: it is
// named, and its value is derived again by evaluating.
//
// A plan is read as what it is, a file that anybody may have written: its size,
// depth and number of fields are bounded, and nothing in it is believed that can
// be asked of the cluster.
package plan
