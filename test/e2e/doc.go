// Package e2e tests kubectl-mutate as a user meets it: the plugin's binary,
// called by kubectl, on a real Kubernetes API server.
//
// # The cluster
//
// By default the tests build etcd, kube-apiserver and kubectl from Go modules
// (once, into .bin at the root of the repository) and start them on 127.0.0.1.
// Two variables change that:
//
//   - KUBEBUILDER_ASSETS names a directory that holds etcd, kube-apiserver and
//     kubectl; nothing is built then.
//   - E2E_KUBECONFIG names a kubeconfig of a cluster that the tests may write to
//     as its administrator; nothing is started then, and kubectl comes from
//     KUBEBUILDER_ASSETS or from PATH. The ordinary KUBECONFIG is never used.
//
// Tests fail where there is no cluster; none is ever skipped for that reason.
//
// # The scripts
//
// testdata/script holds one testscript file per behaviour; run one with
//
//	go test -run 'TestScripts/NAME$' .
//
// A script starts in a directory of its own, with a namespace of its own:
//
//	$NAMESPACE           the namespace, current in all the kubeconfigs
//	$KUBECONFIG          the cluster's administrator
//	$VIEWER_KUBECONFIG   user "viewer" of group "viewers", who may do what the script grants
//
// Scripts run in parallel, so what they do outside their namespace must not
// meet: a policy selects by namespace or by names that no other script uses.
// Beside the commands that testscript brings there are:
//
//	exits CODE PROGRAM ARG...
//	    Runs a program, like exec, and demands this very exit code.
//
//	[!] live TYPE/NAME JSONPATH VALUE
//	    Reads a field of an object on the server; an absent field is "".
//
//	remember
//	[!] untouched
//	    Notes name and resourceVersion of all objects in the script's namespaces,
//	    and later demands that they are the same: nothing written, nothing
//	    created, nothing deleted.
//
//	namespaces NAME...
//	    Makes the namespaces that a policy names. The script has them for itself
//	    until it ends; what it leaves in them is deleted.
//
//	meanwhile dry-run|write kubectl ARG...
//	    From now on requests go through a proxy, which runs kubectl, as the
//	    administrator and in the script's namespace, just before it passes on the
//	    first patch of that sort: what others do while kubectl-mutate is at work.
package e2e
