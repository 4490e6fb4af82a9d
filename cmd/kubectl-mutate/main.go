// Command kubectl-mutate is the kubectl plugin `kubectl mutate`.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // every way to log in that kubectl knows

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(plugin.Main(os.Args, streams))
}
