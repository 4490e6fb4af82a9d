//go:build unix

package file

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// writableByOthers are the bits of a mode by which the group, or everybody, can write.
const writableByOthers = 0o022

// foreign returns why another user may have written a file, or nil.
func foreign(path string, info fs.FileInfo) error {
	return foreignTo(os.Geteuid(), path, info)
}

func foreignTo(user int, path string, info fs.FileInfo) error {
	if strings.HasPrefix(path, "-") {
		path = "./" + path // which is not an option
	}
	path = wording.ShellQuote(path)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && user != 0 && stat.Uid != 0 && int(stat.Uid) != user {
		return foreignError(fmt.Sprintf("it belongs to another user (uid %d)", stat.Uid), "cp -R "+path+" COPY")
	}
	if mode := info.Mode(); (mode.IsRegular() || mode.IsDir() || mode&fs.ModeNamedPipe != 0) &&
		mode.Perm()&writableByOthers != 0 {
		return foreignError(fmt.Sprintf("others can write to it (mode %04o)", mode.Perm()), "chmod go-w "+path)
	}
	return nil
}
