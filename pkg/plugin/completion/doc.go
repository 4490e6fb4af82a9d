// Package completion completes command lines with what only the cluster, the
// kubeconfig or the policies know.
package completion
