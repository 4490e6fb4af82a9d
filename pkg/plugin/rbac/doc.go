// Package rbac computes the permissions that a run needs, as the smallest Roles and ClusterRole
// that grant them, and the permission that a refused request lacked.
package rbac
