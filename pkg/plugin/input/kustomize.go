package input

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// KustomizeGroup is the API group of the files that kustomize reads itself.
const KustomizeGroup = "kustomize.config.k8s.io"

// readKustomization builds a kustomization with kubectl's settings: no plugins, and no files from
// outside of its directory. The lines of its objects are those of what is built, so that an object
// is named by the directory alone.
func (r *Reader) readKustomization(ctx context.Context, input Files, yield func(engine.Document, error) bool) error {
	name := input.Kustomize
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), name)
	if err != nil {
		return &Error{Path: name, Err: fmt.Errorf("kustomize: %w", err)}
	}
	text, err := built.AsYaml()
	if err != nil {
		return &Error{Path: name, Err: fmt.Errorf("kustomize: %w", err)}
	}
	return r.readStream(ctx, stream{bytes.NewReader(text), name}, input, func(d engine.Document, err error) bool {
		if err == nil {
			d.Origin = name
		}
		return yield(d, err)
	})
}

// isKustomization reports whether a file is one that kustomize reads itself.
func isKustomization(path string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path))
}
