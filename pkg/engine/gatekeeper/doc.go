// Package gatekeeper evaluates Gatekeeper's mutators: Assign, AssignMetadata, ModifySet and AssignImage.
//
// All mutators form one program. They run sorted by kind and name, and the whole set runs again until nothing
// changes; each is matched again with the object as changed so far. Mutators with contradicting locations are
// found at compilation and do not run, as in a cluster.
//
// A location is parsed into typed nodes, and a walker follows it through an object to set a value (walk.go).
// The criteria of spec.match are in match.go.
package gatekeeper
