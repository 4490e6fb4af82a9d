package completion

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// runs are the IDs of those that history lists, the latest first. Journals that are
// kept elsewhere are files, and so is anything that begins no ID. Objects follow.
func (x completer) runs(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return x.objects(c, args, begun)
	}
	return ofRuns(begun, func(r *journal.Run) string { return r.ID })
}

// journals are those of the runs that history lists, which were cut off.
func (x completer) journals(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return ofRuns(begun, func(r *journal.Run) string {
		if !r.Resumable() {
			return ""
		}
		return r.Name()
	})
}

// ofRuns are the names of the runs that have one, or else files.
func ofRuns(begun string, name func(*journal.Run) string) ([]string, cobra.ShellCompDirective) {
	directory, err := journal.Directory()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	runs, err := journal.Runs(directory, "", func(string, error) {})
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var out []string
	for i := range runs {
		if text := name(&runs[i]); text != "" && strings.HasPrefix(text, begun) {
			out = append(out, text+"\t"+runs[i].Started.UTC().Format(time.RFC3339)+" "+runs[i].Context)
		}
	}
	if len(out) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return out, nothing | cobra.ShellCompDirectiveKeepOrder
}
