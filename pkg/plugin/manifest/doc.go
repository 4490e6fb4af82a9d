// Package manifest reads Kubernetes objects from files, directories, URLs and
// standard input, each with the place it came from.
//
// Manifests are untrusted: the size of a document, the nesting of its values
// and what its aliases expand to are bounded, loops of symbolic links cannot be
// entered, and a URL is fetched only when the caller allows it. Values are what
// kubectl would read: YAML 1.1 booleans, int64 and float64 numbers; a key that
// stands twice in one mapping is an error.
package manifest
