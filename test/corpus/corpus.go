// Package corpus holds what real engines answered to policies, for the tests that
// compare the program with them.
//
// cases/SET/NAME.txtar is one case: its comment says which engine answered, in
// which version and to which operation, its files are the policy, the objects, and
// the objects that ended changed. conversions/NAME.txtar is a ClusterPolicy with
// verified rewrites of it and objects on which both did the same.
//
// More cases, those of other projects, stay outside of the repository: the
// environment variable CONFORMANCE_DIR names their folder.
package corpus

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

//go:embed cases conversions
var own embed.FS

// Files are the files of a case, by name.
type Files map[string][]byte

// Has reports whether there is a file of a name.
func (f Files) Has(name string) bool {
	_, ok := f[name]
	return ok
}

// Write writes the files into a directory.
func (f Files) Write(dir string) error {
	for name, content := range f {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// A Case is a set of policies and what an engine made of objects: policy.yaml,
// objects.yaml, world.yaml (other objects that exist), values.yaml (Kyverno's
// Values), want.yaml (every object that ends changed), want.error (what the engine
// said where it failed).
type Case struct {
	Files `json:"-"`

	ID        string   `json:"id"` // SET/NAME
	Engine    string   `json:"engine"`
	Operation string   `json:"operation"`
	Dialects  []string `json:"dialects"`
	Undecided []string `json:"undecided"` // NAMESPACE/KIND/NAME of objects that are not compared

	Own bool `json:"-"` // in the repository
}

// Set is the first part of the ID.
func (c *Case) Set() string {
	set, _, _ := strings.Cut(c.ID, "/")
	return set
}

// Cases returns the cases of the repository, and after them those of the folder
// that CONFORMANCE_DIR names. It is an error if that folder holds none.
func Cases() ([]Case, error) {
	names, err := fs.Glob(own, "cases/*/*.txtar")
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, name := range names {
		c := Case{Own: true, ID: strings.TrimSuffix(strings.TrimPrefix(name, "cases/"), ".txtar")}
		comment, files, err := archive(name)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(comment, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.Files = files
		out = append(out, c)
	}
	outside, err := outsideCases(out)
	return append(out, outside...), err
}

// outsideCases are the cases in CONFORMANCE_DIR, SET/NAME/case.json with the files
// beside it, but for those that are in the repository.
func outsideCases(known []Case) ([]Case, error) {
	dir := Outside()
	if dir == "" {
		return nil, nil
	}
	ids := map[string]bool{}
	for _, c := range known {
		ids[c.ID] = true
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "case.json"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("CONFORMANCE_DIR=%s holds no case", dir)
	}
	var out []Case
	for _, p := range paths {
		files, err := folder(filepath.Dir(p))
		if err != nil {
			return nil, err
		}
		c := Case{Files: files}
		if err := json.Unmarshal(files["case.json"], &c); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if !ids[c.ID] {
			out = append(out, c)
		}
	}
	return out, err
}

// Outside is the folder of the cases that are not in the repository; empty where
// CONFORMANCE_DIR is not set.
func Outside() string { return os.Getenv("CONFORMANCE_DIR") }

// NotRun is the line with which a test says that it ran no case of other projects;
// empty where they are run.
func NotRun() string {
	if Outside() != "" {
		return ""
	}
	return "the cases of other projects are not run: CONFORMANCE_DIR is not set (docs/maintaining.md says what it holds)"
}

// A Pair is a policy and a rewrite of it that does the same: old.yaml, objects.yaml,
// and new.yaml, a MutatingPolicy, or map.yaml, a MutatingAdmissionPolicy, or both.
type Pair struct {
	Files
	ID string // SET/NAME
}

// Pairs returns the conversions of the repository, and after them the folder
// migrations beside the one that CONFORMANCE_DIR names, if it is there.
func Pairs() ([]Pair, error) {
	names, err := fs.Glob(own, "conversions/*.txtar")
	if err != nil {
		return nil, err
	}
	var out []Pair
	for _, name := range names {
		_, files, err := archive(name)
		if err != nil {
			return nil, err
		}
		out = append(out, Pair{files, strings.TrimSuffix(name, ".txtar")})
	}
	if Outside() == "" {
		return out, nil
	}
	paths, err := filepath.Glob(filepath.Join(Outside(), "..", "migrations", "*", "old.yaml"))
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		files, err := folder(filepath.Dir(p))
		if err != nil {
			return nil, err
		}
		out = append(out, Pair{files, "migrations/" + filepath.Base(filepath.Dir(p))})
	}
	return out, nil
}

func archive(name string) (comment []byte, files Files, err error) {
	content, err := own.ReadFile(path.Clean(name))
	if err != nil {
		return nil, nil, err
	}
	a := txtar.Parse(content)
	files = Files{}
	for _, f := range a.Files {
		files[f.Name] = f.Data
	}
	return a.Comment, files, nil
}

func folder(dir string) (Files, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := Files{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}
