package fix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fix/edit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// manifest is a file with objects that policies change.
type manifest struct {
	path    string // as it was read
	place   string // with its links followed
	before  []byte
	text    []byte        // the new content
	hide    bool          // the diff is not shown
	patch   bool          // a patch of an overlay for one object
	allow   bool          // values derived from Secrets
	refused error         // why the file stays unchanged
	left    map[int]error // why documents of it stay unchanged
	// first has the documents of before, now those of text
	first, now []engine.Document
	hidden     map[int][]fieldpath.Path     // fields derived from Secrets, by document
	fields     map[int][]engine.FieldChange // changed fields of all rounds, by document
}

// file returns the file of a path, which it reads once.
func (o *options) file(ctx context.Context, path string) *manifest {
	f := o.files[path]
	if f == nil {
		f = &manifest{
			path: path, allow: o.AllowSecrets, left: map[int]error{}, fields: map[int][]engine.FieldChange{},
		}
		o.files[path] = f
		f.refuse(f.read(ctx, o.roots))
	}
	return f
}

// refuse leaves the file unchanged, unless the reason is nil.
func (f *manifest) refuse(why error) {
	if why != nil && f.refused == nil {
		f.refused, f.text = why, f.before
	}
}

func (f *manifest) changed() bool { return !bytes.Equal(f.before, f.text) }

// read reads the file, which has to be in one of the directories of -f.
func (f *manifest) read(ctx context.Context, roots []string) (err error) {
	f.place = file.Place(f.path)
	if !file.Inside(f.path, roots) {
		return fmt.Errorf("%s: %s is not in a directory of -f", f.path, f.place)
	}
	info, err := os.Stat(f.place)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "reading", Path: f.path, Err: errors.New("not a regular file")}
	}
	if err == nil {
		f.before, err = os.ReadFile(f.place)
	}
	if err != nil {
		return err
	}
	if f.text = f.before; engine.LooksLikeTemplate(string(f.before)) {
		return &input.Error{Path: f.path, Err: errTemplate}
	}
	f.first, err = input.ReadText(ctx, f.path, f.before)
	f.now = f.first
	return err
}

// errTemplate suggests how to change a template.
var errTemplate = errors.New(`it is a template of Helm, which is not changed: see what is to change with "helm template CHART | kubectl mutate preview -p POLICIES -f -", and change the values or the chart, or add a post-renderer`)

// withTemplates replaces errors of files that are templates by errTemplate.
func withTemplates(err error) error {
	all := engine.JoinedErrors(err)
	for i := range all {
		if at := (*input.Error)(nil); errors.As(all[i], &at) {
			if text, unread := os.ReadFile(at.Path); unread == nil && engine.LooksLikeTemplate(string(text)) {
				all[i] = &input.Error{Path: at.Path, Line: at.Line, Err: errTemplate}
			}
		}
	}
	return errors.Join(all...)
}

// change applies changes to the documents of the file, and reports whether it applied any. An object whose
// change fails stays unchanged.
func (f *manifest) change(ctx context.Context, changes []*engine.Change) bool {
	after := map[int]map[string]any{}
	for _, c := range changes {
		i, err := f.find(c)
		if err != nil {
			f.refuse(err)
		}
		if f.refused != nil {
			return false
		}
		if f.left[i] == nil {
			f.leave(i, f.secrets(i, c))
		}
		if f.left[i] == nil {
			after[i] = wanted(f.now[i].Object().Object, c)
			f.fields[i] = append(f.fields[i], c.Fields...)
		}
	}
	if len(after) == 0 {
		return false
	}
	if f.apply(ctx, f.text, f.now, after) == nil {
		return true
	}
	made := false
	for _, i := range slices.Sorted(maps.Keys(after)) {
		err := f.apply(ctx, f.text, f.now, map[int]map[string]any{i: after[i]})
		f.leave(i, err)
		made = made || err == nil
	}
	return made
}

// leave leaves a document unchanged, unless the reason is nil.
func (f *manifest) leave(i int, why error) {
	if why != nil {
		f.left[i] = why
	}
}

// unsettled reverts the changes of objects that policies change again each time.
func (f *manifest) unsettled(ctx context.Context, changes []*engine.Change) {
	for _, c := range changes {
		if i, err := f.find(c); err == nil && f.left[i] == nil {
			f.leave(i, fmt.Errorf("%s: policies change it again each time that they are evaluated", f.first[i].Origin))
		}
	}
	after := map[int]map[string]any{}
	for i, d := range f.now {
		if f.left[i] == nil {
			after[i] = d.Object().Object
		}
	}
	f.refuse(f.apply(ctx, f.before, f.first, after))
}

// apply edits documents of a file's content, and keeps the result.
func (f *manifest) apply(ctx context.Context, text []byte, now []engine.Document,
	after map[int]map[string]any,
) error {
	documents := make([]edit.Document, len(now))
	for i, d := range now {
		documents[i] = edit.Document{Before: d.Object().Object, After: d.Object().Object}
		if v, is := after[i]; is {
			documents[i].After = v
		}
	}
	text, err := edit.Apply(ctx, text, documents)
	if at := (*edit.Error)(nil); errors.As(err, &at) {
		return &input.Error{Path: f.path, Line: at.Line, Err: err}
	}
	if err != nil {
		return err
	}
	f.text = text
	f.now, err = input.ReadText(ctx, f.path, text)
	return err
}

// find returns the index of the document of a change, which must be as it was evaluated.
func (f *manifest) find(c *engine.Change) (int, error) {
	found := -1
	for i, d := range f.now {
		key := d.Key
		if key.Namespace == "" {
			key.Namespace = c.Subject.Namespace
		}
		if d.Origin != c.Target.Origin || key.Whole() != c.Subject.Whole() ||
			!diff.Same(withNamespace(d.Object().Object, c.Before), c.Before.Object) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("%s: %s is there twice", c.Target.Origin, c.Subject)
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("%s: %s is not there any more: the file has changed", c.Target.Origin, c.Subject)
	}
	return found, nil
}

// withNamespace returns an object in the namespace in which it was evaluated.
func withNamespace(object map[string]any, in *unstructured.Unstructured) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["namespace"] != nil || in.GetNamespace() == "" {
		return object
	}
	return diff.With(object, "metadata", diff.With(metadata, "namespace", in.GetNamespace()))
}

// wanted returns an object with the fields of a change, with a namespace only if the file has one.
func wanted(object map[string]any, c *engine.Change) map[string]any {
	out := diff.Subset(c.Before.Object, c.After.Object, c.Fields, nil)
	metadata, _ := object["metadata"].(map[string]any)
	now, _ := out["metadata"].(map[string]any)
	if metadata["namespace"] == nil && now != nil {
		now = maps.Clone(now)
		if delete(now, "namespace"); len(now) == 0 && object["metadata"] == nil {
			return diff.Without(out, "metadata")
		}
		out = diff.With(out, "metadata", now)
	}
	return out
}

// secrets records the fields of a change that are derived from Secrets, and refuses values that a rule
// computes from one.
func (f *manifest) secrets(i int, c *engine.Change) error {
	for _, s := range c.Steps {
		if s.Outcome != engine.Changed || !s.Confidential || !s.Writes.Computes() {
			continue
		}
		if !f.allow {
			return fmt.Errorf("%s: %s may write values derived from a Secret, and --allow-secrets-in-files is not set", c.Target.Origin, s.Rule)
		}
	}
	if c.Shown == nil {
		return nil
	}
	for j, field := range c.Shown.Fields {
		if !field.Withheld {
			continue
		}
		path := c.Fields[j].Path
		if from := c.Fields[j].SecretFrom; from > 0 {
			path = path[:from-1]
		}
		if f.hidden == nil {
			f.hidden = map[int][]fieldpath.Path{}
		}
		f.hidden[i] = append(f.hidden[i], path)
	}
	return nil
}

// objects counts the documents that change; those of an overlay are in other files.
func (f *manifest) objects() int {
	n := 0
	if f.patch {
		return n
	}
	for i := range f.now {
		if !diff.Same(f.now[i].Object().Object, f.first[i].Object().Object) {
			n++
		}
	}
	return n
}

// write writes the file, unless it has changed since it was read.
func (f *manifest) write() error {
	switch {
	case f.text == nil:
		return os.Remove(f.place)
	case f.before == nil:
		if err := os.MkdirAll(filepath.Dir(f.place), 0o755); err != nil { //nolint:gosec // a directory of a repository
			return err
		}
		return file.Replace(f.place, file.Shared, f.text)
	}
	now, err := os.ReadFile(f.place)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, f.before) {
		return fmt.Errorf("%s: it has changed since it was read: run fix again", f.path)
	}
	return file.Rewrite(f.place, f.text)
}
