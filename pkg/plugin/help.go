package plugin

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"
)

// topic is a heading of the help, and the flags below it in their order.
type topic struct {
	title string
	flags []string
}

// topics hold every flag of every command. Those that most runs need come first.
var topics = []topic{ //nolint:gochecknoglobals // an immutable table
	{"Common options", []string{
		"policy", "from-cluster", "with", "to", "filename", "all-namespaces", "namespaces", "all", "selector", "contexts", "for", "output", "explain", "save", "plan", "resume", "dry-run",
		"yes", "watch",
	}},
	{"Policies", []string{"only", "skip", "values", "strict", "assume-binding", "allow-unknown-kinds", "allow-http", "allow-registry", "annotate", "engine-view"}},
	{"Objects", []string{"kustomize", "recursive", "world", "field-selector", "max-objects", "percent", "percent-seed", "shard", "variants", "seed", "unproved"}},
	{"The request that policies see", []string{"operation", "request-user", "request-group"}},
	{"Checks and writes", []string{
		"validate", "max-changes", "skip-rejected", "include-managed", "take-from", "force-conflicts", "field-manager", "on-error", "max-failures",
		"batch-size", "pause", "wait", "timeout", "concurrency", "events", "journal", "journal-secrets", "plan-max-age",
	}},
	{"The Job", []string{"apply", "schedule", "shards", "image", "claim"}},
	{"Roles", []string{"name", "user", "group", "serviceaccount"}},
	{"What is printed", []string{
		"report", "write-reports", "metrics", "metrics-listen", "query", "template", "group-by", "expand", "context-lines", "color", "show-secrets", "quiet", "exit-code",
	}},
	{"Requests to the server", []string{"max-clusters-at-once", "chunk-size", "kube-api-qps", "kube-api-burst"}},
}

// topicOf returns the topic of a flag, and its place in it; the last topic if it has none.
func topicOf(flag string) (int, int) {
	for i := range topics {
		if at := slices.Index(topics[i].flags, flag); at >= 0 {
			return i, at
		}
	}
	return len(topics) - 1, len(flag)
}

// printHelp prints the help of a command that has flags: kubectl's, with the flags by topic.
func printHelp(c *cobra.Command, root string) {
	out := c.OutOrStdout()
	fmt.Fprintf(out, "%s\n\n", paragraph.ReplaceAllString(strings.TrimSpace(c.Long), "$1"))
	if c.HasExample() {
		fmt.Fprintf(out, "Examples:\n%s\n\n", strings.ReplaceAll(strings.TrimRight(c.Example, " \n"), "\n  \n", "\n\n"))
	}
	printFlags(out, c.LocalNonPersistentFlags())
	fmt.Fprintf(out, "Usage:\n  %s [options]\n\nUse \"%s options\" for a list of global command-line options (applies to all commands).\n", c.UseLine(), root)
}

// printFlags prints flags below their topics, one below the other.
func printFlags(out io.Writer, flags *pflag.FlagSet) {
	limit, err := term.GetWordWrapperLimit()
	if err != nil {
		limit = 0
	}
	byTopic := make([][]*pflag.Flag, len(topics))
	flags.VisitAll(func(f *pflag.Flag) {
		if i, _ := topicOf(f.Name); !f.Hidden && f.Name != "help" {
			byTopic[i] = append(byTopic[i], f)
		}
	})
	var text bytes.Buffer
	printer := templates.NewHelpFlagPrinter(&text, limit)
	for i, list := range byTopic {
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(a, b *pflag.Flag) int {
			_, x := topicOf(a.Name)
			_, y := topicOf(b.Name)
			return x - y
		})
		text.Reset()
		for _, f := range list {
			printer.PrintHelpFlag(f)
		}
		fmt.Fprintf(out, "%s:\n%s\n", topics[i].title, bytes.ReplaceAll(text.Bytes(), []byte("\n\n"), []byte("\n")))
	}
}
