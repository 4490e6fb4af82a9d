// Package rbac says which permissions a run of policies takes, as the least Roles
// and ClusterRole that give them, and which of them a refused request lacked.
package rbac
