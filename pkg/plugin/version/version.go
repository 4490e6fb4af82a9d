package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set by the linker in releases.
//
//nolint:gochecknoglobals // the linker sets only variables
var (
	version = ""
	commit  = ""
)

// Release is the release, or what the Go tool knows of the build, or "dev".
func Release() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// UserAgent is how the API server's audit log names the program.
func UserAgent() string {
	return fmt.Sprintf("kubectl-mutate/%s (%s/%s)", Release(), runtime.GOOS, runtime.GOARCH)
}

// Commit is the commit that the program was built from, if that is known.
func Commit() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}
