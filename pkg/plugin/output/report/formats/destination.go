package formats

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// stdio is the file that stands for standard output.
const stdio = "-"

// Options say where reports go, and what is in them.
type Options struct {
	// Render is as for what -o prints; its Out is standard output.
	Render output.Options
	ErrOut io.Writer
	// StdoutTaken tells that the user wants something else on standard output.
	StdoutTaken bool
}

// destinations are where the reports of a run go.
type destinations struct {
	files []*file.File
	// instead tells that one of the reports takes the place of what -o prints.
	instead bool
}

// each reads the reports that are named as FORMAT=FILE, and has each begun with what
// it is to be written with; the file is nil for a stream. It refuses what cannot be
// written, and creates no file yet.
func (d *destinations) each(named []string, o Options, begin func(name string, r output.Options, f *file.File) error) error {
	seen := map[string]bool{}
	for _, text := range named {
		name, path, _ := strings.Cut(text, "=")
		if seen[path] && path != "" {
			return fmt.Errorf("--report %s: %s is named twice", text, path)
		}
		seen[path] = true
		if path == stdio && o.StdoutTaken {
			return fmt.Errorf("--report %s: -o prints to standard output: leave one of them out, or name a file", text)
		}
		r, f, err := d.open(name, path, o)
		if err == nil {
			err = begin(name, r, f)
		}
		if err != nil {
			return fmt.Errorf("--report %s: %w", text, err)
		}
	}
	return nil
}

func (d *destinations) open(name, path string, o Options) (r output.Options, f *file.File, err error) {
	r = o.Render
	switch {
	case path == stdio:
		d.instead = true
	case path == "" && name == githubReport:
		r.Out = o.ErrOut
	case path == "":
		return r, nil, errors.New("use FORMAT=FILE")
	default:
		mode := file.Shared
		if r.ShowSecrets {
			mode = file.Private
		}
		if f, err = file.New(path, mode); err != nil {
			return r, nil, err
		}
		d.files = append(d.files, f)
		r.Out = f
	}
	return r, f, nil
}
