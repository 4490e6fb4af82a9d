// Package input reads Kubernetes objects from files, directories, URLs and standard input, each with its
// place, and policies from the same sources or from the cluster.
package input
