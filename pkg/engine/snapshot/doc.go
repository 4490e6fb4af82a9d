// Package snapshot serves objects from memory as an API server would: as the objects to evaluate and as the
// world that policies read.
//
// It needs no cluster: built-in kinds take their scope and schema from the Kubernetes version that this
// program is built with, custom resources from the CustomResourceDefinitions among the objects. Objects are
// kept packed, as strings, and unpacked on demand.
package snapshot
