package input

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// KustomizeGroup is the API group of the files of kustomize.
const KustomizeGroup = "kustomize.config.k8s.io"

// readKustomization builds a kustomization with kubectl's settings: no plugins, and no files from outside of
// its directory. Unlike kubectl it fetches nothing: a file must neither choose servers nor run git. Its
// objects have no lines in files, so the directory is their origin.
func (r *Reader) readKustomization(ctx context.Context, input Files,
	yield func(engine.Document, error) bool,
) error {
	name := input.Kustomize
	if isRemote(name) {
		return &Error{Path: redactedRemote(name), Err: errRemote}
	}
	files := &localFiles{FileSystem: filesys.MakeFsOnDisk(), instead: r.Instead}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, name)
	if files.refused != nil {
		return files.refused
	}
	if err != nil {
		return &Error{Path: name, Err: kustomizeError(err, files.secret)}
	}
	text, err := built.AsYaml()
	if err != nil {
		return &Error{Path: name, Err: kustomizeError(err, files.secret)}
	}
	return r.readStream(ctx, stream{bytes.NewReader(text), name}, input,
		func(d engine.Document, err error) bool {
			if err == nil {
				d.Origin = name
			}
			return yield(d, err)
		})
}

// localFiles are files that kustomize reads into memory.
type localFiles struct {
	filesys.FileSystem
	instead map[string][]byte
	secret  bool  // a file may hold a Secret, or make one
	refused error // why an existing file was not read; kustomize takes it for a missing one
}

// ReadFile reads a file. It refuses a large one, and a kustomization with parts on another server.
func (f *localFiles) ReadFile(path string) ([]byte, error) {
	if text, is := f.instead[path]; is {
		return text, nil
	}
	in, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(in, defaultMaxDocument+1))
	if err != nil {
		return nil, err // a directory, for example, which is tried next
	}
	f.secret = f.secret || mayBeSecret(text)
	switch {
	case len(text) > defaultMaxDocument:
		err = fmt.Errorf("the file is larger than %d bytes", defaultMaxDocument)
	case isKustomization(path):
		err = refuseRemote(text)
	}
	if err != nil {
		f.refused = cmp.Or(f.refused, error(&Error{Path: path, Err: err}))
		return nil, err
	}
	return text, nil
}

// errRemote suggests an alternative.
var errRemote = errors.New("what is on another server is not fetched; build it with 'kubectl kustomize' and pass the result to -f -")

// refuseRemote returns an error for a kustomization with parts that kustomize would clone or fetch. Other
// fields can name remote files as well: transport.GuardDefault refuses those.
func refuseRemote(text []byte) error {
	var k types.Kustomization
	if k.Unmarshal(text) != nil {
		return nil // kustomize reports the error
	}
	for _, f := range []struct {
		name  string
		paths []string
	}{
		{"resources", k.Resources}, {"bases", k.Bases}, {"components", k.Components}, //nolint:staticcheck // kustomize still reads bases
		{"generators", k.Generators}, {"transformers", k.Transformers}, {"validators", k.Validators},
	} {
		for i, path := range f.paths {
			if isRemote(path) {
				return fmt.Errorf("%s[%d]: %s: %w", f.name, i, redactedRemote(path), errRemote)
			}
		}
	}
	return nil
}

// remote matches at least what kustomize takes for a URL or a repository: see
// https://github.com/kubernetes-sigs/kustomize/blob/api/v0.21.1/api/internal/git/repospec.go.
var remote = regexp.MustCompile(`(?i)^(git::)*((ssh|https?|file):|github\.com[:/]|[a-z][a-z0-9-]*@[^/:]*[/:])`)

func isRemote(path string) bool { return remote.MatchString(path) }

// redactedRemote returns a remote path without credentials; a repository of ssh has no password.
func redactedRemote(path string) string {
	if strings.Contains(path, "://") {
		return redacted(strings.TrimPrefix(path, "git::"))
	}
	return path
}

// kustomizeError returns an error of kustomize without the values of generators and, if it has read a
// Secret, without quoted values: for a literal that is not KEY=VALUE, kustomize quotes all literals of a
// Secret, and for a patch that does not fit its whole data.
func kustomizeError(err error, secret bool) error {
	text := err.Error()
	if before, _, found := strings.Cut(text, "literal source"); found {
		return fmt.Errorf("kustomize: %sa literal of a generator is not KEY=VALUE", before)
	}
	if !secret {
		return fmt.Errorf("kustomize: %w", err)
	}
	return errors.New("kustomize: " + kustomizeQuotes.ReplaceAllStringFunc(text, func(part string) string {
		if kept := kustomizeNames.FindString(part); kept != "" {
			return kept
		}
		return engine.HiddenValue
	}))
}

var (
	// kustomizeQuotes matches values as kustomize and its libraries quote them, and anything that looks alike.
	kustomizeQuotes = regexp.MustCompile("(?s)(?:(?:unknown field|mapping key|unable to find field) )?\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|anchor '.*'|node contents:.*|map key: .*|\\{\\{.*\\}|(?:map\\[|\\[\\])\\S*interface \\{\\}\\{.*|number \\S+")
	// kustomizeNames matches names of fields.
	kustomizeNames = regexp.MustCompile(`(?s)^(?:unknown field|mapping key|unable to find field) .*`)
)

// isKustomization reports whether a file is a kustomization.
func isKustomization(path string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path))
}
