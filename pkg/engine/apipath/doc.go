// Package apipath reads the paths of a Kubernetes API server, and judges which
// requests to them a policy may make.
//
// Policies are untrusted: a path that they choose may read, and ask what somebody
// may do, but neither act nor carry credentials.
package apipath
