package watch

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// filesEvery is how often files are looked at.
const filesEvery = 2 * time.Second

// Files notes how files and directories are, and returns what calls changed whenever something in them has changed since, by its size
// or time, until the context ends. Links are followed, such as those of a volume that a cluster mounts.
func Files(paths []string) (follow func(ctx context.Context, changed func())) {
	before := stateOf(paths)
	return func(ctx context.Context, changed func()) {
		for len(paths) > 0 && Pause(ctx, filesEvery) {
			if now := stateOf(paths); now != before {
				before = now
				changed()
			}
		}
	}
}

// stateOf identifies files as they are. What cannot be read is a state, too.
func stateOf(paths []string) uint64 {
	h := fnv.New64a()
	for _, path := range paths {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		_ = filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error { // errors are noted
			info, failed := os.Stat(name)
			if err != nil || failed != nil {
				fmt.Fprintf(h, "%s: not there\n", name)
				return nil
			}
			if !info.IsDir() {
				fmt.Fprintf(h, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
			}
			return nil
		})
	}
	return h.Sum64()
}
