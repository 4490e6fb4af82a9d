// Package gatekeeper evaluates Gatekeeper's mutators: Assign, AssignMetadata,
// ModifySet and AssignImage.
//
// All mutators form one program. They run sorted by kind and name, and the whole set runs
// again until nothing changes; each is matched again against the object as the others
// left it. Mutators whose locations contradict each other are found when they are
// compiled, and none of them runs, as in a cluster.
//
// Package location below this one has spec.location and the path tests, package match
// the match block.
package gatekeeper
