package memory

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// available returns how many bytes the machine has, or the control group of the process; zero if that is not known.
func available() int64 {
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) != nil {
		return 0
	}
	most := int64(machine.Totalram) * int64(machine.Unit) //nolint:gosec // no machine has that much
	groups, _ := os.ReadFile("/proc/self/cgroup")         // absent without control groups
	return groupLimit("/sys/fs/cgroup", string(groups), most)
}

// groupLimit returns the smallest memory limit of the control group that /proc/self/cgroup names, and of those above
// it, below the directory where control groups are mounted; most if none is smaller.
func groupLimit(mounted, groups string, most int64) int64 {
	for line := range strings.Lines(groups) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::") // version 2
		for path := filepath.Join("/", group); ok; path = filepath.Dir(path) {
			text, _ := os.ReadFile(filepath.Join(mounted, path, "memory.max")) // absent at the root, and in other namespaces
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				most = min(most, limit) // "max" is no number
			}
			ok = path != "/"
		}
	}
	return most
}
