// This file identifies the build of the program.

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

// Repository is where the images of releases are.
const Repository = "ghcr.io/kubectl-mutate/kubectl-mutate"

// Image is the image of this build: of v1.2.3 that with tag 1.2.3. There is one for releases only.
func Image() string {
	return Repository + ":" + strings.ReplaceAll(strings.TrimPrefix(Release(), "v"), "+", "-")
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

// IsRelease reports whether this is the build of a release, and not of a commit between two.
func IsRelease() bool { return releaseName.MatchString(Release()) }

// releaseName matches versions such as v1.2.3 and 1.2.3-rc.1, and none that git describes.
var releaseName = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)
