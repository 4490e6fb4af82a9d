// Command controlplane builds and runs the control plane that the end-to-end
// tests use.
//
//	controlplane build            builds the programs that are missing
//	controlplane run              starts a plane, prints its kubeconfig, waits for Ctrl-C
//	controlplane run -- CMD ARG…  runs a command with KUBECONFIG set to the plane and its
//	                              kubectl on PATH, and ends as the command does
//
// It is run in test/e2e (go -C test/e2e run ./cmd/controlplane). KUBEBUILDER_ASSETS
// names a directory of programs to use instead of built ones.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/kubectl-mutate/kubectl-mutate/test/e2e/internal/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		os.Exit(ended.ExitCode()) // the command has said why itself
	case err != nil:
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || (args[0] != "build" && args[0] != "run") {
		return errors.New("usage: controlplane build | run [-- COMMAND ARGUMENT...]")
	}
	assets, err := controlplane.Locate(ctx, os.Stderr)
	if err != nil || args[0] == "build" {
		return err
	}
	command := args[1:]
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	return with(ctx, assets, command)
}

// with runs the command, or waits for an interrupt, beside a plane.
func with(ctx context.Context, assets controlplane.Assets, command []string) (err error) {
	plane, err := controlplane.Start(ctx, assets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if len(command) == 0 {
		fmt.Println(plane.Kubeconfig())
		<-ctx.Done()
		return nil
	}
	// Set for this process, so that the command itself is looked up there too.
	if err := os.Setenv("PATH", string(assets)+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig())
	return cmd.Run()
}
