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
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// maxFileSize bounds a plan, which is untrusted input.
const maxFileSize = 256 << 20

// planFile is the header of a plan file. The entries follow, one per line.
type planFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Plan
}

// FileError is the error for a file that is not a plan, or cannot be used as one.
type FileError struct {
	Path string
	Err  error
}

// Error returns "plan FILE: reason". The reason may quote the file, and is truncated.
func (e *FileError) Error() string { return fmt.Sprintf("plan %s: %.400v", e.Path, e.Err) }

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }

// Reasons of a FileError besides those of the file system.
var (
	ErrNoPlan  = errors.New("not a plan: preview --save makes one")
	ErrDamaged = errors.New("damaged")
)

// CheckFormat returns an error if this version of the program does not read
// plans and journals of an APIVersion.
func CheckFormat(version string) error {
	if version != APIVersion {
		return fmt.Errorf("it was written by another version of this program, in the format %s; this version reads %s", version, APIVersion)
	}
	return nil
}

// Save writes a plan atomically, readable only by its owner. It leaves out values of Secrets, and values
// derived from them.
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

// CheckFile returns a *FileError if Save is expected to fail. It leaves no file.
func CheckFile(path string) error {
	if path == "-" {
		return &FileError{Path: path, Err: errors.New("a plan is a file, which apply-existing reads: name one")}
	}
	return fileError(path, file.Check(path, file.Private))
}

// fileError returns an error of writing a plan, which names its path once.
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

// Load reads a plan for display. The error is a *FileError.
func Load(path string) (*Plan, error) {
	return load(path, func(*os.File) error { return nil })
}

// LoadOwn reads a plan to apply. It fails if other users may have written the file. The error is a
// *FileError.
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
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err == nil && len(text) > maxFileSize {
		err = fmt.Errorf("larger than %d MiB", maxFileSize>>20)
	}
	var p *Plan
	if err == nil {
		p, err = Parse(text)
	}
	if err != nil {
		return nil, &FileError{Path: path, Err: err}
	}
	return p, nil
}

// recount counts the entries, so that the summary cannot contradict them.
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

// Parse reads a plan, and checks its consistency. The error wraps ErrNoPlan or ErrDamaged, or says that
// another version wrote it.
func Parse(text []byte) (*Plan, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, ErrNoPlan
	}
	var head struct{ APIVersion, Kind string }
	if err := decode(text, &head); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(head.APIVersion, group+"/") || head.Kind != Kind {
		return nil, ErrNoPlan
	}
	if err := CheckFormat(head.APIVersion); err != nil { // its entries may differ
		return nil, fmt.Errorf("%w; make it again with preview --save", err)
	}
	var in planFile
	if err := decode(text, &in); err != nil {
		return nil, err
	}
	out := &in.Plan
	if err := out.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	out.recount()
	return out, nil
}

func decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%w or cut off: %w", ErrDamaged, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// validateEntries checks each entry, and that no object has two.
func validateEntries(all []*Entry) error {
	seen := make(map[engine.ObjectKey]bool, len(all))
	for i, e := range all {
		err := errNoObject
		if e != nil {
			err = e.Validate()
		}
		if err == nil && seen[e.Object.Named()] {
			err = fmt.Errorf("%s: %w", e.Object.Named(), ErrTwice)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		seen[e.Object.Named()] = true
	}
	return nil
}

// ErrTwice reports two entries of an object.
var ErrTwice = errors.New("the object already has an entry")

var errNoObject = errors.New("an entry names no object")

// validate checks that a plan is consistent, so that its users need not.
func (p *Plan) validate() error {
	if p.Version == "" || p.Created.IsZero() {
		return errors.New("its version or creation time is missing")
	}
	if err := p.Run.Validate(); err != nil {
		return err
	}
	return validateEntries(p.Entries)
}

// Validate checks the choice, and the documents against their digests.
func (r *Run) Validate() error {
	switch r.Choice.Operation {
	case "", engine.OperationAuto, engine.OperationCreate, engine.OperationUpdate, engine.OperationDelete:
	default:
		return fmt.Errorf("unknown operation %.20q", r.Choice.Operation)
	}
	for _, d := range r.Documents {
		if d.Installed {
			continue
		}
		if d.Content == nil || d.Content.Validate() != nil {
			return fmt.Errorf("%s has no valid content", d.Object)
		}
		if digest, err := digestOf(d.Content); err != nil || digest != d.Digest {
			return fmt.Errorf("%s does not match its digest", d.Object)
		}
		if key := engine.KeyOf(&unstructured.Unstructured{Object: d.Content}); key != d.Object {
			return fmt.Errorf("%s: the content is another object", d.Object)
		}
	}
	if digestOfAll(r.Documents) != r.Digest {
		return errors.New("the policies do not match their digest")
	}
	return nil
}

// Validate checks the consistency of an entry from a file, and gives its fields their values.
func (e *Entry) Validate() error {
	if e.Object.Kind == "" || e.Object.Name == "" || e.Object.Version == "" {
		return errNoObject
	}
	err := e.Partial.Validate()
	if err == nil {
		err = e.Partial.ValidateShown()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.Object, err)
	}
	return nil
}

// Extension of the plans in a directory.
const Extension = ".plan"

// FileName returns the name of a cluster's plan in a directory. The names are in the order of the places, in
// which plans are applied.
func FileName(place int, context string) string {
	return fmt.Sprintf("%03d-%s%s", place, file.PlainName(context), Extension)
}

// Files returns the plans in a directory, in the order of their application. It fails if there are none, or
// if another user may have written the directory.
func Files(directory string) ([]string, error) {
	if err := file.CheckDirectory(directory); err != nil {
		return nil, fileError(directory, err)
	}
	out, err := plans(directory)
	if err == nil && len(out) == 0 {
		err = &FileError{Path: directory, Err: errors.New("the directory has no plan: preview --contexts --save makes them")}
	}
	return out, err
}

func plans(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fileError(directory, err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), Extension) {
			out = append(out, filepath.Join(directory, e.Name()))
		}
	}
	return out, nil
}

// MakeDirectory makes a directory for plans, accessible only to its owner. It fails if there are plans, which
// would be applied too.
func MakeDirectory(path string) error {
	there, err := plans(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileError(path, os.MkdirAll(path, 0o700))
	}
	if err == nil && len(there) > 0 {
		err = &FileError{Path: path, Err: fmt.Errorf("the directory has plans already, such as %s: name another one", filepath.Base(there[0]))}
	}
	return err
}

// IsDirectory reports whether a path is a directory.
func IsDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
