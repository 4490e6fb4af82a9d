package factory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/clusterreport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/policyreport"
)

// ClusterReports are reports in a cluster, as FORMAT or FORMAT=NAME names them.
type ClusterReports struct {
	API  policyreport.API
	Name string
}

// ParseClusterReports reads the value of --write-reports.
func ParseClusterReports(text string) (ClusterReports, error) {
	format, name, named := strings.Cut(text, "=")
	out := ClusterReports{Name: "kubectl-mutate"}
	switch format {
	case "policyreport":
		out.API = policyreport.WGPolicy()
	case "openreports":
		out.API = policyreport.OpenReports()
	default:
		return out, fmt.Errorf("--write-reports %q: use policyreport or openreports, or FORMAT=NAME", text)
	}
	if named {
		out.Name = name
	}
	if problems := validation.IsDNS1123Label(out.Name); len(problems) > 0 {
		return out, fmt.Errorf("--write-reports %q: the name must consist of at most 63 lower-case letters, digits and '-', the first and the last of them a letter or digit", text)
	}
	return out, nil
}

// Kinds are those of the reports: on objects in namespaces, and on the others.
func (c ClusterReports) Kinds() [2]schema.GroupVersionKind {
	return [2]schema.GroupVersionKind{c.API.Kind(), c.API.ClusterKind()}
}

// Open returns a client that can write such reports and nothing else.
func (c ClusterReports) Open(ctx context.Context, config *genericclioptions.ConfigFlags, client flags.Client) (*cluster.ReportClient, error) {
	read, err := cluster.New(config, cluster.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	var resources []schema.GroupResource
	for _, kind := range c.Kinds() {
		mapping, err := read.Mapping(ctx, kind)
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("the cluster has no %s of %s: install the CustomResourceDefinitions of that API", kind.Kind, kind.GroupVersion())
		}
		if err != nil {
			return nil, err
		}
		resources = append(resources, mapping.Resource.GroupResource())
	}
	write, err := cluster.New(config, cluster.Options{QPS: client.QPS, Burst: client.Burst, ReadOnly: true, But: resources})
	return &cluster.ReportClient{Client: write, FieldManager: c.Name}, err
}

// Options are those of the reports of a scope.
func (c ClusterReports) Options(scope engine.Scope) clusterreport.Options {
	kinds := c.Kinds()
	return clusterreport.Options{Name: c.Name, Kind: kinds[0], ClusterKind: kinds[1], Scope: scope, Workers: 8}
}

// store begins the reports of a run in the cluster; nil where none are wanted.
func (f *Factory) store(ctx context.Context, args []string, written string) (*clusterreport.Store, policyreport.API, error) {
	if written == "" {
		return nil, policyreport.API{}, nil
	}
	c, err := ParseClusterReports(written)
	switch {
	case err != nil:
		return nil, c.API, err
	case f.Client == nil:
		return nil, c.API, errors.New("--write-reports needs a cluster: -f/--filename and -k/--kustomize name manifests; use --report FORMAT=FILE")
	case f.ShowSecrets:
		return nil, c.API, errors.New("--write-reports cannot be used with --show-secrets: others may read the reports")
	}
	scope, err := f.scope(f.Client.Mapper(), args, engine.Request{})
	if err != nil {
		return nil, c.API, err
	}
	client, err := c.Open(ctx, f.Config, f.Evaluate.Client)
	if err != nil {
		return nil, c.API, fmt.Errorf("--write-reports %s: %w", written, err)
	}
	return clusterreport.New(ctx, client, c.Options(scope)), c.API, nil
}
