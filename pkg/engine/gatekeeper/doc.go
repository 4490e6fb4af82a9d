// Package gatekeeper evaluates Gatekeeper's mutators: Assign, AssignMetadata,
// ModifySet and AssignImage.
//
// All mutators form one program. They run sorted by kind and name, and the whole set runs
// again until nothing changes; each is matched again against the object as the others
// left it. Mutators whose locations contradict each other are found when they are
// compiled, and none of them runs, as in a cluster.
//
// A location is parsed to typed nodes, and a walker follows it through an object to set a value (walk.go).
// The criteria of spec.match are in match.go.
package gatekeeper
