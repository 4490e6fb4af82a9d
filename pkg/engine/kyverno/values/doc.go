// Package values reads the values that users of Kyverno's command line give for
// what a policy reads: variables, labels of namespaces, answers of APIs.
//
// The format is kind Values of cli.kyverno.io/v1alpha1
// (cmd/cli/kubectl-kyverno/apis/v1alpha1/values_spec.go), and of kind Test the two
// fields apiCallResponses and globalContextEntries, which answer for servers.
package values
