package input

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// files turns one path, as it was typed, into the files to read.
func files(path string, input Files) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		info, err := os.Stat(path)
		switch {
		case isURL(path) && !input.URLs:
			yield("", at(redacted(path), errors.New("a URL cannot be read here: download the file and give its path")))
		case path == "-", isURL(path), err == nil && !info.IsDir():
			yield(path, nil)
		case err != nil:
			yield("", at(path, err))
		default:
			d := directory{Files: input, path: path, yield: yield}
			if d.walk(path) && d.found == 0 {
				yield("", at(path, d.empty()))
			}
		}
	}
}

// directory is a walk through one typed directory.
type directory struct {
	Files
	path  string
	yield func(string, error) bool
	found int
	below bool // directories were left out
}

// walk yields the manifests of a directory in the order of their names, and
// reports whether the caller wants more. It cannot loop: links to directories are
// not followed.
func (d *directory) walk(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		d.found++
		return d.yield("", at(path, err))
	}
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir() && !d.Recursive:
			d.below = true
		case entry.IsDir():
			if !d.walk(name) {
				return false
			}
		case isManifest(name):
			if !d.file(name) {
				return false
			}
		case d.LeftOut != nil:
			d.LeftOut(d.path, name)
		}
	}
	return true
}

// file yields a name unless it is a link to a directory, a pipe or a device.
func (d *directory) file(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		d.found++
		return d.yield("", at(name, err))
	}
	if !info.Mode().IsRegular() {
		return true
	}
	d.found++
	return d.yield(name, nil)
}

func (d *directory) empty() error {
	if d.below {
		return errors.New("the directory holds no .yaml, .yml or .json file, and the directories below it are not read unless -R is given")
	}
	return errors.New("the directory holds no .yaml, .yml or .json file")
}

func isManifest(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
