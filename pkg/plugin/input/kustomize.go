package input

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/memory"
)

// KustomizeGroup is the API group of the files that kustomize reads itself.
const KustomizeGroup = "kustomize.config.k8s.io"

// readKustomization builds a kustomization with kubectl's settings: no plugins, and no files from
// outside of its directory. The lines of its objects are those of what is built, so that an object
// is named by the directory alone.
func (r *Reader) readKustomization(ctx context.Context, input Files, yield func(engine.Document, error) bool) error {
	name := input.Kustomize
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(boundedFiles{filesys.MakeFsOnDisk(), &r.Budget}, name)
	if err != nil {
		return &Error{Path: name, Err: kustomizeError(err)}
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

// boundedFiles are files that kustomize reads into memory, where they become many times as much as
// documents.
type boundedFiles struct {
	filesys.FileSystem
	budget *memory.Budget
}

// ReadFile reads a file, and takes what it becomes from the budget.
func (f boundedFiles) ReadFile(path string) ([]byte, error) {
	text, err := f.FileSystem.ReadFile(path)
	if err == nil {
		err = f.budget.Spend(kustomizeCost*memory.Nodes(text), len(text))
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

// kustomizeCost is how many times the memory of a value kustomize takes for it.
const kustomizeCost = 4

// kustomizeError returns an error of kustomize without the values of generators: for a
// literal that is not KEY=VALUE, kustomize quotes all literals of a Secret.
func kustomizeError(err error) error {
	if before, _, found := strings.Cut(err.Error(), "literal source"); found {
		return fmt.Errorf("kustomize: %sa literal of a generator is not KEY=VALUE", before)
	}
	return fmt.Errorf("kustomize: %w", err)
}

// isKustomization reports whether a file is one that kustomize reads itself.
func isKustomization(path string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path))
}
