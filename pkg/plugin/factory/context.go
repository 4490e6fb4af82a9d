package factory

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/external"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

// grant gives a world the external services that the flags allow.
func grant(f *flags.Context, w *engine.World) {
	if f.AllowHTTP {
		w.Remote = &external.ServiceClient{}
	}
	if f.AllowRegistry {
		w.Registry = &external.RegistryClient{UserAgent: version.UserAgent()}
	}
}

// What the file of --values holds.
const (
	valuesGroup   = "cli.kyverno.io"
	valuesVersion = valuesGroup + "/v1alpha1"
	valuesKind    = "Values"
)

// loadValues reads the file of --values, which may hold nothing else.
func loadValues(ctx context.Context, path string, r *input.Reader) ([]engine.Document, error) {
	if path == "" {
		return nil, nil
	}
	documents, err := r.ReadAll(ctx, input.Files{
		Paths: []string{path}, APIVersion: valuesVersion, Kind: valuesKind,
	})
	if err != nil {
		return nil, fmt.Errorf("--values: %w", err)
	}
	for i, d := range documents {
		if d.Key.Kind == "Value" { // Kyverno's command reads either
			d.Object().SetKind(valuesKind)
			d = engine.NewDocument(d.Object(), d.Origin)
			documents[i] = d
		}
		if gvk := d.Key.GroupVersionKind(); gvk.Kind != valuesKind || gvk.GroupVersion().String() != valuesVersion {
			return nil, fmt.Errorf("--values: %s: %s of %s is not %s of %s", d.Origin, gvk.Kind, gvk.GroupVersion(), valuesKind, valuesVersion)
		}
	}
	if len(documents) == 0 {
		return nil, errors.New("--values: " + path + " is empty")
	}
	return documents, nil
}

// supplied returns the objects that values describe.
func supplied(all []engine.Dialect, documents []engine.Document) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, dialect := range all {
		supplier, ok := dialect.(engine.Supplier)
		if !ok {
			continue
		}
		for _, d := range documents {
			out = append(out, supplier.Supplied(d)...)
		}
	}
	return out
}

// besidePolicies returns the role of a kind in policy files. Values are only read with --values:
// a file that is there for tests must not change the result.
func besidePolicies(all []engine.Dialect) func(schema.GroupKind) engine.Role {
	return func(gk schema.GroupKind) engine.Role {
		if gk.Kind == valuesKind && gk.Group == valuesGroup {
			return engine.Foreign
		}
		return dialects.Accepts(all, gk)
	}
}
