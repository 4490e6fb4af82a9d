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
//	go test -run 'TestScripts/^NAME$' .
//
// testdata/installed holds those that install policies which the API server itself
// enforces (TestInstalledPolicies), testdata/engines the one that installs the
// definitions of Kyverno and Gatekeeper (TestInstalledEngines). Both run after the others,
// and one script after the other.
// testdata/documents holds examples of Kyverno's documentation (TestDocuments), which run at night.
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
//	modulefile MODULE@VERSION PATH COPY
//	    Copies a file of a Go module, which is downloaded if need be.
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
//	    first patch of that sort: what other clients do during a run.
//
//	start FILE PROGRAM ARG...
//	await FILE REGEXP
//	serves FILE PATH CODE REGEXP
//	becomes TYPE/NAME JSONPATH VALUE
//	end CODE
//	    Runs a program beside the script, with what it prints in a file; waits until a file
//	    has a text, or a field on the server a value; ends the program with SIGTERM, and
//	    demands its exit code.
//
// # The oracle
//
// TestOracle compares MutatingAdmissionPolicies with the admission of the API
// server itself. A case is a file in testdata/oracle: policies and bindings
// (policy.yaml), what they read (world.yaml), the objects (objects.yaml), how they
// are sent (settings.yaml), what the server answered (answer.txt), and what
// kubectl-mutate does where that differs (differs.txt); -update writes the answers.
// NAMESPACE stands for the case's namespace. The server must be fresh: one
// of version 1.36 never sees a parameter of a built-in kind again once the last
// policy with parameters of that kind is gone.
//
// # The documents
//
// TestDocs runs the command lines of README.md and docs/*.md, each document on a
// cluster of its own, and compares what its console blocks show; -update-docs writes
// them. CONTRIBUTING.md says how a document is read.
//
// # What is random
//
// Two tests make up what they do from seeds. A failure names its seed:
//
//	go test -run TestRandomChanges -seed 7 .
//	go test -run TestProof -seed 7 -v .
//
// -random-changes and -proof-runs make them run longer. The figures of the proof are
// in the output of -v, the rate of writes in that of BenchmarkThroughput.
package e2e
