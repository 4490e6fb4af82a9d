package flags

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The flags that name files which a run reads, or writes.
var (
	readFrom  = []string{"policy", "with", "filename", "kustomize", "world", "values", "plan", "resume"} //nolint:gochecknoglobals // an immutable table
	writtenTo = []string{"save", "metrics", "journal", "report"}                                         //nolint:gochecknoglobals // an immutable table
)

// stdio is what stands for a standard stream in the place of a file.
const stdio = "-"

// CheckFiles returns an error if one file is to be written for two flags, or if a file that
// the run reads is to be overwritten. Read names files that are read without a flag.
func CheckFiles(typed *pflag.FlagSet, read ...string) error {
	taken := map[string]string{} // by path, the flag as it was typed
	for _, name := range read {
		taken[place(name)] = name
	}
	var err error
	typed.Visit(func(f *pflag.Flag) {
		if slices.Contains(readFrom, f.Name) {
			for _, name := range values(f) {
				taken[place(name)] = "--" + f.Name + " " + name
			}
		}
	})
	typed.Visit(func(f *pflag.Flag) {
		if !slices.Contains(writtenTo, f.Name) {
			return
		}
		for _, text := range values(f) {
			name, this := text, "--"+f.Name+" "+text
			if f.Name == "report" {
				_, name, _ = strings.Cut(text, "=")
			}
			if name == "" || name == stdio || strings.HasPrefix(place(name), "/dev/") {
				continue
			}
			if other, is := taken[place(name)]; is && err == nil {
				err = fmt.Errorf("%s and %s are the same file: name another one", other, this)
			}
			taken[place(name)] = this
		}
	})
	return err
}

// place returns the absolute path of a file.
func place(name string) string {
	if absolute, err := filepath.Abs(name); err == nil {
		return absolute
	}
	return filepath.Clean(name)
}
