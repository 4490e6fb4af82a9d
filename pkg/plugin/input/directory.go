package input

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// files returns the files to read for a path as it was typed.
func files(path string, input Files) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		info, err := os.Stat(path)
		switch {
		case isURL(path) && !input.URLs:
			yield("", errorAt(redacted(path), errors.New("a URL cannot be read here: download the file and give its path")))
		case path == "-", isURL(path), err == nil && !info.IsDir():
			yield(path, nil)
		case err != nil:
			yield("", errorAt(path, err))
		default:
			walk(path, input, yield)
		}
	}
}

// walk yields the manifests of a directory in the order of their names. It does not follow links to
// directories, so it cannot loop.
func walk(directory string, input Files, yield func(string, error) bool) {
	found, hint := 0, ""
	hand := func(name string, err error) error {
		if found++; !yield(name, err) {
			return fs.SkipAll
		}
		return nil
	}
	root := directory + string(filepath.Separator) // may be a link
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return hand("", errorAt(filepath.Clean(name), err))
		case name == root:
			return nil
		case entry.IsDir() && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() && !input.Recursive:
			hint = ", and the directories below it are not read unless -R is given"
			return fs.SkipDir
		case entry.IsDir(), strings.HasPrefix(entry.Name(), "."):
			return nil
		case !isManifest(name):
			if input.LeftOut != nil {
				input.LeftOut(directory, name)
			}
			return nil
		}
		info, err := os.Stat(name)
		if err != nil {
			return hand("", errorAt(name, err))
		}
		if !info.Mode().IsRegular() { // a link to a directory, a pipe or a device
			return nil
		}
		return hand(name, nil)
	})
	if found == 0 {
		yield("", errorAt(directory, errors.New("the directory holds no .yaml, .yml or .json file"+hint)))
	}
}

func isManifest(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
