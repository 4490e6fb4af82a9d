package flags

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// Contexts has the flags that choose several clusters.
type Contexts struct {
	Names  []string // with wildcards
	AtOnce int
}

// NewContexts returns the defaults.
func NewContexts() Contexts { return Contexts{AtOnce: 4} }

// AddFlags registers the flags.
func (f *Contexts) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Names, "contexts", nil, "Clusters to run on, as contexts of the kubeconfig: names, wildcards such as prod-*, or all. They are read side by side, and shown in this order.")
	flags.IntVar(&f.AtOnce, "max-clusters-at-once", f.AtOnce, "Number of clusters of --contexts that are read at once.")
}

// Given reports whether several clusters are chosen.
func (f *Contexts) Given() bool { return len(f.Names) > 0 }

// oneCluster lists the flags for one cluster or none, and for credentials that no other cluster should get.
var oneCluster = []string{"context", "cluster", "server", "tls-server-name", "token", "filename", "kustomize"} //nolint:gochecknoglobals // an immutable table

// Check returns an error for flags that contradict --contexts.
func (f *Contexts) Check(typed *pflag.FlagSet) error {
	if !f.Given() {
		if typed.Changed("contexts") {
			return errors.New("--contexts names no context")
		}
		if typed.Changed("max-clusters-at-once") {
			return errors.New("--max-clusters-at-once is for the clusters of --contexts")
		}
		return nil
	}
	if f.AtOnce < 1 {
		return fmt.Errorf("--max-clusters-at-once %d: must be at least 1", f.AtOnce)
	}
	if name := firstOf(typed, "watch", "write-reports"); name != "" {
		return fmt.Errorf("--%s is for one cluster: it cannot be used with --contexts", name)
	}
	return CheckSeveral(typed)
}

// CheckSeveral returns an error for flags of one cluster on a command that runs on several.
func CheckSeveral(typed *pflag.FlagSet) error {
	if name := firstOf(typed, oneCluster...); name != "" {
		return fmt.Errorf("--%s is for one cluster: leave it out on several", name)
	}
	return nil
}

// firstOf returns the first of names that was typed, or "".
func firstOf(typed *pflag.FlagSet, names ...string) string {
	if i := slices.IndexFunc(names, typed.Changed); i >= 0 {
		return names[i]
	}
	return ""
}

// NewConfig returns the flags by which kubectl finds a cluster.
func NewConfig(wrap func(*rest.Config) *rest.Config) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(wrap)
	return flags.WithDiscoveryBurst(300).WithDiscoveryQPS(50)
}

// ConfigOf returns the typed flags for a context of the kubeconfig, without those that choose one cluster or
// have its token.
func ConfigOf(typed *genericclioptions.ConfigFlags, context string) *genericclioptions.ConfigFlags {
	out := NewConfig(typed.WrapConfigFn)
	dir := *typed.CacheDir // each has its own
	out.CacheDir, out.KubeConfig, out.Namespace, out.AuthInfoName = &dir, typed.KubeConfig, typed.Namespace,
		typed.AuthInfoName
	out.Insecure, out.CertFile, out.KeyFile, out.CAFile = typed.Insecure, typed.CertFile,
		typed.KeyFile, typed.CAFile
	out.Timeout = typed.Timeout
	out.Impersonate, out.ImpersonateUID, out.ImpersonateGroup = typed.Impersonate, typed.ImpersonateUID,
		typed.ImpersonateGroup
	out.ImpersonateUserExtra, out.DisableCompression, out.ProxyURL = typed.ImpersonateUserExtra,
		typed.DisableCompression, typed.ProxyURL
	out.Context = &context
	return out
}

// CurrentContext returns the context of --context, or the current one of the kubeconfig; empty without
// either.
func CurrentContext(config *genericclioptions.ConfigFlags) string {
	if config.Context != nil && *config.Context != "" {
		return *config.Context
	}
	raw, err := config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "" // history needs no kubeconfig
	}
	return raw.CurrentContext
}
