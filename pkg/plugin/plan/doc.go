// Package plan keeps what a preview found, so that exactly that can be applied
// later, or shown again without a cluster.
//
// A Plan is one JSON document: the Run says on which cluster, with which policies
// and by which choice of objects it was made, so that it can be repeated; an Entry
// is one object as it was and as it is to become. Its Partial holds no more of the
// object than what changes, and distinguishes whole lists from single elements, so
// that a change can be compared, undone and printed without the object.
//
// A plan holds no values of Secrets. A field that has one is Withheld: it is named,
// and its value is derived again by evaluating.
//
// A plan is an untrusted file: its size, depth and number of fields are bounded, and
// what the cluster knows is asked of the cluster.
package plan
