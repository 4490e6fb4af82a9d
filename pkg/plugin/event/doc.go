// Package event records on an object which policies changed it, as a Kubernetes
// Event.
package event
