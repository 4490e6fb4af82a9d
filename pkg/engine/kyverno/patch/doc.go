// Package patch applies the patches of Kyverno's mutate rules.
//
// A rule has one of patchStrategicMerge and patchesJson6902, or the overlay and
// patches of Kyverno 1.0 to 1.5; each is a package beside this one. Here is what
// they share: a patch is read once, its variables are resolved for each object,
// and labels and annotations come out as strings.
package patch
