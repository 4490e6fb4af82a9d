package memory

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// available returns how many bytes the process may have; zero if that is not known.
func available() int64 {
	var known []int64
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) == nil {
		known = append(known, int64(machine.Totalram)*int64(machine.Unit)) //nolint:gosec // no machine has that much
	}
	groups, _ := os.ReadFile("/proc/self/cgroup") // absent without control groups
	known = append(known, groupLimits("/sys/fs/cgroup", string(groups))...)
	known = append(known, addressSpace())
	smallest := int64(math.MaxInt64)
	for _, limit := range known {
		if limit > 0 {
			smallest = min(smallest, limit)
		}
	}
	if smallest == math.MaxInt64 {
		return 0
	}
	return smallest
}

// groupLimits returns the memory limits of the control groups that /proc/self/cgroup names,
// and of those above them, below the directory where control groups are mounted.
func groupLimits(mounted, groups string) []int64 {
	var out []int64
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, file := mounted, "memory.max" // version 2
		if parts[0] != "0" {
			if parts[1] != "memory" {
				continue
			}
			dir, file = filepath.Join(mounted, "memory"), "memory.limit_in_bytes"
		}
		for path := filepath.Join("/", parts[2]); ; path = filepath.Dir(path) {
			text, _ := os.ReadFile(filepath.Join(dir, path, file)) // absent at the root, and in other namespaces
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				out = append(out, limit) // "max" is no number
			}
			if path == "/" {
				break
			}
		}
	}
	return out
}

// addressSpace returns what "ulimit -v" leaves beside the address space that the process has
// reserved; zero if nothing limits it.
func addressSpace() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil || limit.Cur > math.MaxInt64 {
		return 0
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _, _ := strings.Cut(string(text), " ")
	reserved, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return 0
	}
	return max(int64(limit.Cur)-reserved*int64(os.Getpagesize()), 1)
}
