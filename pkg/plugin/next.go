package plugin

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nextCommand is the apply-existing command that makes what a preview showed:
// the same arguments and flags, less those that only say how to print.
func nextCommand(preview *cobra.Command, args []string) string {
	if save := preview.Flag("save"); save != nil && save.Changed {
		return planCommand(preview.Root(), save.Value.String())
	}
	words := append([]string{preview.Parent().CommandPath(), applyExisting}, quoteAll(args)...)
	preview.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "output", "query", "exit-code", "show-secrets", "explain", "metrics", "color", "group-by", "expand", "context-lines", "quiet":
			return
		case "token", "username", "password":
			return // never print credentials
		}
		for _, value := range values(f) {
			words = append(words, typedFlag(f, value))
		}
	})
	return strings.Join(words, " ")
}

// planCommand is the apply-existing command for a plan, with the flags that were
// typed to choose a cluster.
func planCommand(root *cobra.Command, file string) string {
	words := []string{root.CommandPath(), applyExisting, "--plan", quote(file)}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "token", "username", "password", "namespace":
			return // never print credentials; the plan knows its namespace
		}
		if !f.Changed {
			return
		}
		for _, value := range values(f) {
			words = append(words, typedFlag(f, value))
		}
	})
	return strings.Join(words, " ")
}

// values are what was typed for a flag; several for one that may be repeated.
func values(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

func typedFlag(f *pflag.Flag, value string) string {
	name, separator := "--"+f.Name, "="
	if f.Shorthand != "" {
		name, separator = "-"+f.Shorthand, " "
	}
	if f.Value.Type() == "bool" && value == "true" {
		return name
	}
	return name + separator + quote(value)
}

func quoteAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quote(w)
	}
	return out
}

// quote makes a word safe to paste into a POSIX shell.
func quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
