// Package variant derives objects that are not there, but could be, and on which policies
// act in another way.
//
// What it varies, it finds in the literals of the policies: a field of a kind's schema whose name stands
// in a policy is one that the policy may read or write, and the values that follow that name are
// those that matter. So it knows no policy language. Variants have one difference from an object first, and
// then two. Each is a valid object: what the
// schema refuses is left out, and so are empty lists and maps where a server drops them.
package variant
