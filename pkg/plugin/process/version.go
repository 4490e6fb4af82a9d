package process

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the linker in releases.
//
//nolint:gochecknoglobals // the linker sets only variables
var (
	version = ""
	commit  = ""
)

// Release returns the release, the module version of the build, or "dev".
func Release() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// Repository holds the images of releases.
const Repository = "ghcr.io/kubectl-mutate/kubectl-mutate"

// Image returns the image of this build: v1.2.3 has tag 1.2.3. Only releases have an image.
func Image() string {
	return Repository + ":" + strings.ReplaceAll(strings.TrimPrefix(Release(), "v"), "+", "-")
}

// UserAgent identifies the program in the API server's audit log.
func UserAgent() string {
	return fmt.Sprintf("kubectl-mutate/%s (%s/%s)", Release(), runtime.GOOS, runtime.GOARCH)
}

// Commit returns the commit that the program was built from; empty if unknown.
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

// IsRelease reports whether this build is a release, not a commit between two releases.
func IsRelease() bool { return releaseName.MatchString(Release()) }

// releaseName matches versions such as v1.2.3 and 1.2.3-rc.1, but no output of git describe between them.
var releaseName = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)
