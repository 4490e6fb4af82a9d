// Package immutable predicts which changes an API server refuses because fields may
// not change.
//
// Its rules are those of the update validation of Kubernetes' own kinds. Only what
// a server surely refuses is a rule; what depends on its configuration is left to
// the dry run. test/e2e asks a real server about each case in testdata.
package immutable
