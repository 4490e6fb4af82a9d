// Package input reads what the user names: Kubernetes objects from files,
// directories, URLs and standard input, each with the place it came from, and
// policies from the same sources or from the cluster.
package input
