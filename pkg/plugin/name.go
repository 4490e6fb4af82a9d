package plugin

import (
	"path/filepath"
	"strings"
)

// displayName is how the program was called, for help and errors. kubectl runs a
// plugin by its absolute path, and leaves the shell's `_` variable, which names
// the command that was typed, pointing to kubectl. File names follow kubectl's
// rule: a dash starts a sub-command and an underscore stands for a dash.
func displayName(argv0, typed string) string {
	base := commandName(argv0)
	called, isPlugin := strings.CutPrefix(base, "kubectl-")
	if !isPlugin || !filepath.IsAbs(argv0) || commandName(typed) == base {
		return base
	}
	return "kubectl " + strings.ReplaceAll(strings.ReplaceAll(called, "-", " "), "_", "-")
}

func commandName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".exe")
}
