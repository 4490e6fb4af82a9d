// Command kubectl-mutate is the kubectl plugin `kubectl mutate`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // every way to log in that kubectl knows

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return plugin.Main(ctx, os.Args, streams)
}
