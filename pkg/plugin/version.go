package plugin

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Set by the linker in releases.
//
//nolint:gochecknoglobals // see above
var (
	version = ""
	commit  = ""
)

// Version is the release, or what the Go tool knows of the build, or "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// userAgent is how the API server's audit log names the program.
func userAgent() string {
	return fmt.Sprintf("kubectl-mutate/%s (%s/%s)", Version(), runtime.GOOS, runtime.GOARCH)
}

// NewVersionCommand prints the version.
func NewVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text := Version()
			if commit != "" {
				text += " (" + commit + ")"
			}
			_, err := fmt.Fprintf(streams.Out, "kubectl-mutate %s %s %s/%s\n", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
