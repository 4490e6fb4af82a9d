package plugin

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// VersionInfo is the output of version -o json and -o yaml.
type VersionInfo struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
	// Languages lists the policy languages that this build reads.
	Languages []string `json:"languages"`
}

func versionInfo() VersionInfo {
	info := VersionInfo{
		Version: process.Release(), Commit: process.Commit(), GoVersion: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	for _, d := range dialects.All() {
		info.Languages = append(info.Languages, d.Name())
	}
	return info
}

// String returns the version on one line.
func (v VersionInfo) String() string {
	line := v.Version
	if v.Commit != "" {
		line += " (" + v.Commit + ")"
	}
	return fmt.Sprintf("kubectl-mutate %s %s %s", line, v.GoVersion, v.Platform)
}

func (v VersionInfo) print(out io.Writer, format string) error {
	switch format {
	case "":
		_, err := fmt.Fprintln(out, v)
		return err
	case formats.JSON, formats.YAML:
		return structured.Write(out, format == formats.YAML, v)
	}
	return &formats.UnknownFormatError{Format: format, Allowed: []string{formats.JSON, formats.YAML}}
}

// NewVersionCommand prints the version.
func NewVersionCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: templates.LongDesc(`
			Print the version of the program and how it was built. No cluster is contacted.`),
		Example: templates.Examples(fmt.Sprintf(`
			# For a bug report
			%[1]s version -o yaml`, name)),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return versionInfo().print(streams.Out, output) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "Output format: one of json, yaml.")
	return c
}
