package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Assets is a directory that holds the programs etcd, kube-apiserver and
// kubectl, the layout that KUBEBUILDER_ASSETS has.
type Assets string

// Program is the path of one of them.
func (a Assets) Program(name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(string(a), name)
}

// Check returns an error that names a missing program.
func (a Assets) Check() error {
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if info, err := os.Stat(a.Program(name)); err != nil {
			return fmt.Errorf("control plane programs: %w", err)
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("control plane programs: %s is no file", a.Program(name))
		}
	}
	return nil
}

// Where the end-to-end tests, whose working directory is test/e2e, keep the
// module that requires the programs, and the folder that git ignores.
const (
	buildModule = "controlplane"
	buildCache  = "../../.bin"
)

// Locate gives the programs in KUBEBUILDER_ASSETS or, where that is not set,
// those that the repository builds for itself. The working directory is test/e2e.
func Locate(ctx context.Context, progress io.Writer) (Assets, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return Assets(dir), Assets(dir).Check()
	}
	return Build(ctx, buildModule, buildCache, progress)
}

// Build makes the programs from a Go module that requires them, and keeps them
// under cache in a folder named after the content of the module's go.mod and
// go.sum. Programs that are there already are not built again. What it is doing
// goes to progress, because a first build takes minutes.
func Build(ctx context.Context, module, cache string, progress io.Writer) (Assets, error) {
	key, err := cacheKey(module)
	if err != nil {
		return "", err
	}
	// Absolute, because it ends up in the PATH of commands that run elsewhere.
	if cache, err = filepath.Abs(cache); err != nil {
		return "", err
	}
	assets := Assets(filepath.Join(cache, "controlplane-"+key))
	if assets.Check() == nil {
		return assets, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// Built aside and renamed, so that a build that was cut short, or one that
	// runs beside this one, never leaves half a set behind.
	aside, err := os.MkdirTemp(cache, "building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(aside) //nolint:errcheck // nothing depends on it being gone
	if err := build(ctx, module, Assets(aside), progress); err != nil {
		return "", err
	}
	if err := os.Rename(aside, string(assets)); err != nil && assets.Check() != nil {
		return "", err
	}
	return assets, nil
}

func cacheKey(module string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		sum.Write(content)
	}
	return fmt.Sprintf("%s-%s-%x", runtime.GOOS, runtime.GOARCH, sum.Sum(nil)[:6]), nil
}

func build(ctx context.Context, module string, into Assets, progress io.Writer) error {
	out, err := goTool(ctx, module, io.Discard, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	version := strings.TrimSpace(out)
	_, minor, _ := strings.Cut(version, ".")
	minor, _, _ = strings.Cut(minor, ".")
	// Without these the programs call themselves v0.0.0-master, which neither
	// API discovery nor kubectl's version checks expect.
	const pkg = "k8s.io/component-base/version."
	ldflags := "-s -w -X " + pkg + "gitVersion=" + version + " -X " + pkg + "gitMajor=1 -X " + pkg + "gitMinor=" + minor

	fmt.Fprintf(progress, "building etcd, kube-apiserver and kubectl %s from Go modules: once, a few minutes\n", version)
	programs := []struct{ name, pkg string }{
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	}
	for _, p := range programs {
		fmt.Fprintf(progress, "  %s\n", p.name)
		if _, err := goTool(ctx, module, progress, "build", "-ldflags", ldflags, "-o", into.Program(p.name), p.pkg); err != nil {
			return err
		}
	}
	return nil
}

// goTool runs the go command in a module, away from any workspace and without
// cgo, so that the programs do not depend on the machine's C library.
func goTool(ctx context.Context, module string, progress io.Writer, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = io.MultiWriter(&stderr, progress)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s in %s: %w", args[0], module, errors.Join(err, errors.New(strings.TrimSpace(stderr.String()))))
	}
	return stdout.String(), nil
}
