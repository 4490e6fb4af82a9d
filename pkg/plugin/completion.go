package plugin

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"
)

// kubectlCompletion is the script that kubectl runs to complete the arguments of a plugin
// (k8s.io/kubectl/pkg/cmd/plugin_completion.go).
const kubectlCompletion = `#!/usr/bin/env sh
# kubectl runs this to complete "kubectl mutate ...". To install it, put it on the
# PATH, for instance:
#   %s completion kubectl >~/.local/bin/kubectl_complete-mutate && chmod +x ~/.local/bin/kubectl_complete-mutate
exec kubectl mutate __complete "$@"
`

// NewCompletionCommand prints a completion script.
func NewCompletionCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "completion kubectl|bash|zsh|fish|powershell",
		Short: "Print the shell completion script",
		Long: templates.LongDesc(`
			Print the script with which kubectl completes the plugin's flags, types, names and
			policies in any shell in which it completes its own; or the one with which a shell
			completes the program when it is called as kubectl-mutate.`),
		Example: templates.Examples(fmt.Sprintf(`
			# For kubectl mutate, in a directory of the PATH
			%[1]s completion kubectl >~/.local/bin/kubectl_complete-mutate && chmod +x ~/.local/bin/kubectl_complete-mutate

			# For kubectl-mutate, in this bash
			source <(kubectl-mutate completion bash)`, name)),
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:             []string{"kubectl", "bash", "zsh", "fish", "powershell"},
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return printCompletion(c.Root(), args[0], name, streams.Out)
		},
	}
}

func printCompletion(root *cobra.Command, shell, name string, out io.Writer) error {
	if shell == "kubectl" {
		_, err := fmt.Fprintf(out, kubectlCompletion, name)
		return err
	}
	root.Use = "kubectl-mutate" // the program that the shell is to complete
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	default:
		return root.GenPowerShellCompletionWithDesc(out)
	}
}
