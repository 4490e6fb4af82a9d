//go:build tools

// Package controlplane pins the programs of a real Kubernetes control plane,
// so that `go build` can make them from modules. Nothing imports it.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
