package fix

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// changedSince returns the places of files, in the given directories or those of the given files, that are
// new or differ from a revision according to git.
func changedSince(ctx context.Context, paths []string, revision string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, path := range paths {
		root := file.DirectoryOf(path)
		for _, args := range [][]string{
			{
				"diff", "--name-only", "-z", "--relative", "--diff-filter=d", "--no-ext-diff", "--end-of-options",
				revision, "--", ".",
			},
			{"ls-files", "-z", "--others", "--exclude-standard"},
		} {
			command := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
			names, err := command.Output()
			if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
				first, _, _ := strings.Cut(string(bytes.TrimSpace(failed.Stderr)), "\n")
				err = errors.New("git " + args[0] + ": " + first)
			}
			if err != nil {
				return nil, err
			}
			for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
				if name != "" {
					out[file.Place(filepath.Join(root, name))] = true
				}
			}
		}
	}
	return out, nil
}
