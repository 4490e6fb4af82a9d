// Package patching applies the patches of Kyverno's mutate rules to an object: patchStrategicMerge, a
// strategic merge patch whose keys may be anchors; patchesJson6902, a JSON patch (jsonpatch.go); and the
// overlay of Kyverno 1.0 (overlay.go).
//
// CompileStrategicMerge compiles a patch once into nodes with anchors (compile.go). Apply checks the
// conditions (check.go), merges (merge.go, list.go) and, if wanted, collects why nothing changes
// (reasons.go).
//
// All conditions of a patch are checked on the original object before its fields are written. In a list of
// maps this happens per element: a patch element with anchors applies to every live element whose conditions
// hold, and one without anchors to the live element with the same merge keys; if there is none, it becomes a
// new first element. Live elements keep their order.
//
// This is Kyverno's documented behaviour. Kyverno 1.19 itself shares one copy of a patch element between all
// live ones and moves touched elements to the front, and so overwrites or loses data in cases named by the
// tests of this package. For known cases, a warning describes Kyverno's result (notes.go).
package patching
