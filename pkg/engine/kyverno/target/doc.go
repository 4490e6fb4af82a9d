// Package target names the objects that mutate-existing rules change.
//
// An entry of mutate.targets names them by kind, name, namespace and labels, in all
// of which the trigger's variables may stand.
package target
