// Package gatekeeper evaluates Gatekeeper's mutators: Assign, AssignMetadata,
// ModifySet and AssignImage.
//
// All mutators make one program. They run in the order of their kinds and names,
// and the whole set runs again until nothing changes any more; each is matched
// anew against what the others made of the object. Mutators whose locations
// contradict each other are found when they are compiled, and none of them runs,
// as in a cluster.
//
// The parts of the language that stand on their own are packages below this one.
package gatekeeper
