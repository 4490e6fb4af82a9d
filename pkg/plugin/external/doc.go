// Package external calls web services and image registries for policies, where a
// flag allows it. It never sends the credentials of the kubeconfig.
package external
