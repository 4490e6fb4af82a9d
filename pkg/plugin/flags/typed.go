package flags

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Typed returns the flags that were typed, as they can be typed again, without
// credentials, the log level, and those that are left out by name.
func Typed(flags *pflag.FlagSet, leftOut ...string) []string {
	var out []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || isCredential(f.Name) || f.Name == verbosity || slices.Contains(leftOut, f.Name) {
			return
		}
		for _, value := range values(f) {
			out = append(out, typed(f, value))
		}
	})
	return out
}

func isCredential(flag string) bool {
	return flag == "token" || flag == "username" || flag == "password"
}

// values are what was typed for a flag; several for one that may be repeated.
func values(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

func typed(f *pflag.Flag, value string) string {
	name, separator := "--"+f.Name, "="
	if f.Shorthand != "" {
		name, separator = "-"+f.Shorthand, " "
	}
	if f.Value.Type() == "bool" && value == "true" {
		return name
	}
	return name + separator + wording.ShellQuote(value)
}
