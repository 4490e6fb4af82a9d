package flags

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
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

// TakePolicies returns the arguments of a command without the files in front, and adds these to the
// policies: a shell makes -p a.yaml b.yaml of -p *.yaml. It is an error if no -p was typed, or if
// another flag that may have been followed by these files was.
func TakePolicies(typed *pflag.FlagSet, args []string) ([]string, error) {
	policies := typed.Lookup("policy")
	for len(args) > 0 && isManifest(args[0]) {
		if !policies.Changed {
			return nil, fmt.Errorf("%s is a file: did you mean -p %[1]s?", wording.ShellQuote(args[0]))
		}
		for _, other := range []string{"with", "filename", "world"} {
			if typed.Changed(other) {
				return nil, fmt.Errorf("%s is a file, of --policy or of --%s: repeat the flag in front of each file, or name their directory", wording.ShellQuote(args[0]), other)
			}
		}
		if err := typed.Set(policies.Name, args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	return args, nil
}

// isManifest reports whether an argument is a file with the name of a manifest.
func isManifest(arg string) bool {
	switch filepath.Ext(arg) {
	case ".yaml", ".yml", ".json":
		info, err := os.Stat(arg)
		return err == nil && !info.IsDir()
	}
	return false
}
