package process

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine returns the memory of the machine in bytes; zero if unknown.
func machine() int64 {
	var of unix.Sysinfo_t
	if unix.Sysinfo(&of) != nil {
		return 0
	}
	return int64(of.Totalram) * int64(of.Unit) // no machine has that much
}

// container returns the memory limit of the process's control group in bytes; zero without a limit.
func container() int64 {
	groups, _ := os.ReadFile("/proc/self/cgroup") // absent without control groups
	if most := groupLimit("/sys/fs/cgroup", string(groups), math.MaxInt64); most < math.MaxInt64 {
		return most
	}
	return 0
}

// groupLimit returns the smallest memory limit of the control group in /proc/self/cgroup and of its
// ancestors, or most if that is smaller. Control groups are mounted at mounted.
func groupLimit(mounted, groups string, most int64) int64 {
	for line := range strings.Lines(groups) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::") // version 2
		for path := filepath.Join("/", group); ok; path = filepath.Dir(path) {
			// absent at the root, and in other namespaces
			text, _ := os.ReadFile(filepath.Join(mounted, path, "memory.max"))
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				most = min(most, limit) // "max" is not a number
			}
			ok = path != "/"
		}
	}
	return most
}
