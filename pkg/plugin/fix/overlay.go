package fix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fix/edit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// patches is the directory of an overlay with the patches of fix.
const patches = "kubectl-mutate"

// patchHead begins the files of patches.
const patchHead = "# Written by kubectl mutate fix, which replaces it.\n"

// overlay is a kustomization that gets a patch for each object that policies change: other overlays may
// share its base.
type overlay struct {
	directory string
	path      string // of its kustomization.yaml
	text      []byte // the kustomization with the patches in it, for the next build
	own       map[string]any
	paths     []string          // patches of an earlier run, relative to the directory
	built     []engine.Document // without patches of fix
	names     []engine.ObjectKey
	to        []string               // the paths of their patches, relative to the directory
	wanted    map[int]map[string]any // the wanted objects
	asJSON    map[int]bool           // objects that need a JSON patch
	left      map[int]error
	hidden    map[int][]fieldpath.Path // fields derived from Secrets
	fields    map[int][]engine.FieldChange
}

// openOverlay reads the kustomization of a directory.
func openOverlay(ctx context.Context, directory string) (*overlay, error) {
	v := &overlay{
		directory: directory, wanted: map[int]map[string]any{}, asJSON: map[int]bool{}, left: map[int]error{},
		hidden: map[int][]fieldpath.Path{}, fields: map[int][]engine.FieldChange{},
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, err := os.Stat(filepath.Join(directory, name)); err == nil {
			v.path = filepath.Join(directory, name)
		}
	}
	if v.path == "" {
		return nil, fmt.Errorf("%s: there is no kustomization.yaml", directory)
	}
	text, err := os.ReadFile(v.path)
	if err != nil {
		return nil, err
	}
	documents, err := input.ReadText(ctx, v.path, text)
	if err != nil || len(documents) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%s: it is not one kustomization", v.path))
	}
	v.own = maps.Clone(documents[0].Object().Object)
	list, _ := v.own["patches"].([]any)
	for _, entry := range list {
		if name := patchPath(entry); name != "" {
			v.paths = append(v.paths, name)
		}
	}
	v.own["patches"] = slices.DeleteFunc(slices.Clone(list), func(entry any) bool {
		return patchPath(entry) != ""
	})
	v.text = encode(v.own)
	if v.built, err = v.build(ctx, v.text); err != nil {
		return nil, err
	}
	// Patches know objects by their names before this kustomization changes them.
	plain := maps.Clone(v.own)
	for _, field := range []string{"namePrefix", "nameSuffix", "namespace"} {
		delete(plain, field)
	}
	options, _ := plain["generatorOptions"].(map[string]any)
	plain["generatorOptions"] = diff.With(options, "disableNameSuffixHash", true)
	unnamed, err := v.build(ctx, encode(plain))
	if err == nil && len(unnamed) != len(v.built) {
		err = fmt.Errorf("%s: without namePrefix, nameSuffix and namespace it builds other objects", v.path)
	}
	taken := map[string]bool{}
	for i, d := range unnamed {
		words := slices.DeleteFunc([]string{d.Key.Kind, d.Key.Namespace, d.Key.Name}, func(s string) bool {
			return s == ""
		})
		name := patches + "/" + file.PlainName(strings.ToLower(strings.Join(words, "-")))
		if taken[name] {
			name += fmt.Sprintf("-%d", i)
		}
		taken[name] = true
		v.names, v.to = append(v.names, d.Key), append(v.to, name+".yaml")
	}
	return v, err
}

// patchPath returns the path of an entry of patches, if fix has written it.
func patchPath(entry any) string {
	fields, _ := entry.(map[string]any)
	if name, _ := fields["path"].(string); strings.HasPrefix(path.Clean(name), patches+"/") {
		return name
	}
	return ""
}

func encode(v any) []byte {
	text, err := yaml.Marshal(v)
	if err != nil {
		panic(err) // it was decoded before
	}
	return text
}

// build returns the objects of the kustomization with this content.
func (v *overlay) build(ctx context.Context, text []byte) ([]engine.Document, error) {
	r := input.Reader{Instead: map[string][]byte{file.Place(v.path): text}}
	return r.ReadAll(ctx, input.Files{Kustomize: v.directory})
}

// change applies changes to built objects, and reports whether it applied any. In the last round it reverts
// the changes of objects that still change.
func (v *overlay) change(ctx context.Context, changes []*engine.Change, allow, last bool) bool {
	now, err := v.build(ctx, v.text)
	made := false
	for _, c := range changes {
		i := slices.IndexFunc(now, func(d engine.Document) bool {
			key := d.Key
			if key.Namespace == "" {
				key.Namespace = c.Subject.Namespace
			}
			return key.Whole() == c.Subject.Whole()
		})
		f := &manifest{allow: allow, hidden: v.hidden}
		switch {
		case err != nil || i < 0 || v.left[i] != nil:
			continue
		case last:
			err = fmt.Errorf("%s: policies change it again each time that they are evaluated", v.directory)
		default:
			err = f.secrets(i, c)
		}
		if err != nil {
			v.left[i], err = err, nil
			delete(v.wanted, i)
			continue
		}
		v.wanted[i], made = wanted(now[i].Object().Object, c), true
		v.fields[i] = append(v.fields[i], c.Fields...)
	}
	return v.settle(ctx) && made
}

// settle makes the patches produce exactly the wanted objects: a strategic merge patch that does not becomes
// a JSON patch, and is left out if that does not either.
func (v *overlay) settle(ctx context.Context) bool {
	for range 3 {
		list, _ := v.own["patches"].([]any)
		list = slices.Clone(list)
		for _, i := range slices.Sorted(maps.Keys(v.wanted)) {
			text, entry := v.patch(i)
			delete(entry, "path")
			entry["patch"] = string(text)
			list = append(list, entry)
		}
		v.text = encode(diff.With(v.own, "patches", list))
		now, err := v.build(ctx, v.text)
		wrong := 0
		for i := range v.built {
			want, is := v.wanted[i]
			if !is {
				want = v.built[i].Object().Object
			}
			if err == nil && len(now) == len(v.built) && diff.Same(now[i].Object().Object, want) {
				continue
			}
			if wrong++; is && !v.asJSON[i] {
				v.asJSON[i] = true
			} else if is {
				v.left[i] = fmt.Errorf("%s: a patch cannot make the change of %s alone: %s", v.directory, v.built[i].Key, reason(err))
				delete(v.wanted, i)
			}
		}
		if wrong == 0 {
			return true
		}
	}
	for i := range v.wanted { // together they have side effects
		v.left[i] = fmt.Errorf("%s: the patches change other objects as well", v.directory)
	}
	v.wanted = map[int]map[string]any{}
	return false
}

func reason(err error) string {
	if err != nil {
		return err.Error()
	}
	return "what kustomize does after patches undoes it"
}

// patch returns the content of a patch, and its entry in the kustomization.
func (v *overlay) patch(i int) (text []byte, entry map[string]any) {
	key, before, after := v.names[i], v.built[i].Object().Object, v.wanted[i]
	entry = map[string]any{"path": v.to[i]}
	if v.asJSON[i] {
		target := map[string]any{"version": key.Version, "kind": key.Kind, "name": key.Name}
		for field, value := range map[string]string{"group": key.Group, "namespace": key.Namespace} {
			if value != "" {
				target[field] = value
			}
		}
		entry["target"] = target
		return append([]byte(patchHead), encode(diff.Edits(before, after))...), entry
	}
	fields := strategic(before, after)
	metadata, _ := fields["metadata"].(map[string]any)
	metadata = diff.With(metadata, "name", key.Name)
	if key.Namespace != "" {
		metadata["namespace"] = key.Namespace
	}
	fields["apiVersion"], fields["kind"], fields["metadata"] = key.GroupVersionKind().GroupVersion().String(),
		key.Kind, metadata
	return append([]byte(patchHead), encode(fields)...), entry
}

// strategic returns a strategic merge patch.
func strategic(before, after map[string]any) map[string]any {
	out := map[string]any{}
	for name := range before {
		if _, kept := after[name]; !kept {
			out[name] = nil
		}
	}
	for name, now := range after {
		was, had := before[name]
		if had && diff.Same(was, now) {
			continue
		}
		out[name] = now
		switch now := now.(type) {
		case map[string]any:
			if was, isMap := was.(map[string]any); isMap {
				out[name] = strategic(was, now)
			}
		case []any:
			if was, isList := was.([]any); isList {
				out[name] = strategicList(was, now)
			}
		}
	}
	return out
}

// strategicList returns the patch of a list: of its elements if they have names, else the list. It names all
// elements in order, since kustomize puts those of a patch first.
func strategicList(before, after []any) []any {
	for _, field := range []string{"name", "mountPath", "containerPort", "ip"} {
		was, wasNamed := byName(before, field)
		now, isNamed := byName(after, field)
		if !wasNamed || !isNamed {
			continue
		}
		var out []any
		for _, v := range before {
			m, _ := v.(map[string]any)
			if now[m[field]] == nil {
				out = append(out, map[string]any{"$patch": "delete", field: m[field]})
			}
		}
		for _, v := range after {
			m, _ := v.(map[string]any)
			if old := was[m[field]]; old != nil {
				m = diff.With(strategic(old, m), field, m[field])
			}
			out = append(out, m)
		}
		return out
	}
	return after
}

func byName(list []any, field string) (map[any]map[string]any, bool) {
	out := map[any]map[string]any{}
	for _, v := range list {
		m, _ := v.(map[string]any)
		switch m[field].(type) {
		case string, int64:
			out[m[field]] = m
		}
	}
	return out, len(out) == len(list)
}

// mentionsSecrets reports whether a file may have values of Secrets.
func mentionsSecrets(text []byte) bool { return bytes.Contains(bytes.ToLower(text), []byte("secret")) }

// files returns the files that change: the patches and the kustomization.
func (v *overlay) files(ctx context.Context) ([]*manifest, error) {
	var out []*manifest
	add := func(name string, text []byte, i int) error {
		f := &manifest{path: filepath.Join(v.directory, filepath.FromSlash(name)), text: text, patch: true}
		f.place = f.path
		before, err := os.ReadFile(f.path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if info, err := os.Lstat(f.path); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s: not a regular file", f.path)
		}
		if f.before = before; !f.changed() {
			return nil
		}
		f.first, _ = input.ReadText(ctx, f.path, before) // fails for a JSON patch
		f.now, _ = input.ReadText(ctx, f.path, text)
		if i >= 0 {
			f.hidden, f.fields = map[int][]fieldpath.Path{0: v.hidden[i]}, map[int][]engine.FieldChange{0: v.fields[i]}
			f.hide = len(f.now) == 0 && (engine.IsSecret(v.built[i].Object()) || len(v.hidden[i]) > 0)
		}
		f.hide = f.hide || len(f.first) == 0 && mentionsSecrets(before)
		out = append(out, f)
		return nil
	}
	if info, err := os.Lstat(filepath.Join(v.directory, patches)); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s: %s is not a directory", v.directory, patches)
	}
	if info, err := os.Lstat(v.path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is a link, which is not followed: name the directory of the file itself", v.path)
	}
	own, _ := v.own["patches"].([]any)
	list, names := slices.Clone(own), []string{}
	for _, i := range slices.Sorted(maps.Keys(v.wanted)) {
		text, entry := v.patch(i)
		name, _ := entry["path"].(string)
		list, names = append(list, entry), append(names, name)
		if err := add(name, text, i); err != nil {
			return nil, err
		}
	}
	for _, name := range v.paths {
		if !slices.Contains(names, path.Clean(name)) {
			if err := add(name, nil, -1); err != nil {
				return nil, err
			}
		}
	}
	text, err := os.ReadFile(v.path)
	if err != nil {
		return nil, err
	}
	documents, err := input.ReadText(ctx, v.path, text)
	if err != nil || len(documents) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%s: it has changed", v.path))
	}
	was := documents[0].Object().Object
	is := diff.With(was, "patches", list)
	if len(list) == 0 {
		is = diff.Without(was, "patches")
	}
	edited, err := edit.Apply(ctx, text, []edit.Document{{Before: was, After: is}})
	if at := (*edit.Error)(nil); errors.As(err, &at) {
		return nil, &input.Error{Path: v.path, Line: at.Line, Err: err}
	}
	if err == nil && !bytes.Equal(edited, text) {
		out = append(out,
			&manifest{
				path: v.path, place: file.Place(v.path), before: text, text: edited,
				hide: mentionsSecrets(encode(diff.Without(v.own, "resources"))) ||
					mentionsSecrets(bytes.Join(comment.FindAll(text, -1), nil)),
			})
	}
	return out, err
}
