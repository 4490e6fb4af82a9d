// Package controlplane builds, starts and stops a real Kubernetes control plane
// (etcd and kube-apiserver, on free ports of 127.0.0.1) for tests and demos.
//
// There is no controller manager and no scheduler: objects stay as they were
// written, which is what tests of a tool that writes objects want. Everything
// that belongs to a plane lives in one temporary directory and in two child
// processes, and Stop removes both.
package controlplane
