package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// maxFileSize bounds what is read: a plan is untrusted input.
const maxFileSize = 256 << 20

// planFile is a Plan in files. Its entries are written behind it, one a line.
type planFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Plan
}

// FileError is the error for a file that is no plan, or cannot be used as one.
type FileError struct {
	Path string
	Err  error
}

// Error is "plan FILE: reason". What the file holds may be quoted in the reason, which
// is cut.
func (e *FileError) Error() string { return fmt.Sprintf("plan %s: %.400v", e.Path, e.Err) }

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }

// Reasons of a FileError beside those of the file system.
var (
	ErrTooLarge = fmt.Errorf("larger than %d MiB", maxFileSize>>20)
	ErrNoPlan   = errors.New("not a plan: preview --save makes one")
	ErrDamaged  = errors.New("damaged")
)

// CheckFormat returns an error if this version of the program does not read
// plans and journals of an APIVersion.
func CheckFormat(version string) error {
	if version != APIVersion {
		return fmt.Errorf("it was written by another version of this program, in the format %s; this version reads %s", version, APIVersion)
	}
	return nil
}

// Save writes a plan, whole or not at all, for its owner's eyes only. Values
// of Secrets, and what was made of them, are left out.
func Save(path string, p *Plan) error {
	f, err := file.NewRegular(path, file.Private)
	if err != nil {
		return fileError(path, err)
	}
	if err := p.write(f); err != nil {
		return errors.Join(fileError(path, err), f.Discard())
	}
	return fileError(path, f.Commit())
}

// CheckFile returns an error if Save cannot be expected to work. It leaves
// nothing behind. The error is a *FileError.
func CheckFile(path string) error {
	if path == "-" {
		return &FileError{Path: path, Err: errStream}
	}
	return fileError(path, file.Check(path, file.Private))
}

// errStream reports that a plan is nothing to be piped.
var errStream = errors.New("a plan is a file, which apply-existing reads: name one")

// fileError is an error of writing a plan. It names its path once.
func fileError(path string, err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if err == nil {
		return nil
	}
	return &FileError{Path: path, Err: err}
}

// write writes the document, with a line for each entry.
func (p *Plan) write(to io.Writer) error {
	head := planFile{APIVersion, Kind, *p}
	head.Entries = nil
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, `%s,"entries":[`, bytes.TrimSuffix(text, []byte("}")))
	end := "\n"
	for _, e := range p.Entries {
		text, failed := json.Marshal(e.Masked())
		if failed != nil {
			return fmt.Errorf("%s: %w", e.Object, failed)
		}
		_, failed = fmt.Fprintf(to, "%s%s", end, text)
		err, end = cmp.Or(err, failed), ",\n"
	}
	_, failed := io.WriteString(to, "\n]}\n")
	return cmp.Or(err, failed)
}

// Load reads a plan, to show it. The error is a *FileError.
func Load(path string) (*Plan, error) {
	return load(path, func(*os.File) error { return nil })
}

// LoadOwn reads a plan that is going to be applied: it is an error if other users may
// have written it. The error is a *FileError.
func LoadOwn(path string) (*Plan, error) { return load(path, file.CheckOwner) }

func load(path string, check func(*os.File) error) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := check(f); err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	var text bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		text.Grow(int(min(info.Size(), maxFileSize)) + bytes.MinRead)
	}
	_, err = text.ReadFrom(io.LimitReader(f, maxFileSize+1))
	if err == nil && text.Len() > maxFileSize {
		err = ErrTooLarge
	}
	var p *Plan
	if err == nil {
		p, err = Parse(text.Bytes())
	}
	if err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	return p, nil
}

// recount counts the entries again, so that the summary cannot contradict them.
func (p *Plan) recount() {
	p.Summary = p.Summary.Recounted(func(yield func(*engine.Change) bool) {
		for _, e := range p.Entries {
			if c := e.Change(); !yield(&c) {
				return
			}
		}
	})
	p.Incomplete = p.Incomplete || p.Summary.Incomplete > 0
}
