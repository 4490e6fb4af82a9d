// Package patching applies the patches of Kyverno's mutate rules to an object: patchStrategicMerge, a
// strategic merge patch whose keys may be anchors; patchesJson6902, a JSON patch (jsonpatch.go); and the
// overlay of Kyverno 1.0 (overlay.go).
//
// CompileStrategicMerge reads a patch once, into nodes that know their anchors (compile.go). Apply
// checks the conditions (check.go), merges (merge.go, list.go) and, in the same walk,
// finds out why nothing changes if that is wanted (reasons.go).
//
// The conditions of a patch are all judged on the object as it was, then its
// fields are written. In a list of maps this happens element by element: a
// pattern element with anchors is applied to every live element whose conditions
// hold, one without anchors to the live element with the same merge keys, and a
// pattern element that names no live one is a new element, put in front of the
// others. Live elements keep their order.
//
// That is what Kyverno documents. Kyverno 1.19 itself shares one copy of a
// pattern element between all live ones and moves touched elements to the front,
// and so overwrites or loses data in cases which the tests of this package name.
// Where such a case is recognised, a warning describes what Kyverno would have done;
// this is decided beside the merge (notes.go).
package patching
