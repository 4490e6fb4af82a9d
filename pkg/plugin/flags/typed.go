package flags

import (
	"encoding/csv"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Typed returns the typed flags, quoted for a shell, without credentials, the log level and those in
// leftOut.
func Typed(flags *pflag.FlagSet, leftOut ...string) []string {
	var out []string
	visit(flags, leftOut, func(f *pflag.Flag, value string) { out = append(out, typed(f, redact.URL(value))) })
	return out
}

// Args is Typed for a program that is started without a shell, with the credentials in URLs.
func Args(flags *pflag.FlagSet, leftOut ...string) []string {
	var out []string
	visit(flags, leftOut, func(f *pflag.Flag, value string) { out = append(out, "--"+f.Name+"="+value) })
	return out
}

// Words is Args for a file, without credentials.
func Words(flags *pflag.FlagSet) []string {
	var out []string
	visit(flags, nil, func(f *pflag.Flag, value string) { out = append(out, "--"+f.Name+"="+redact.URL(value)) })
	return out
}

// visit calls visit with each typed value.
func visit(flags *pflag.FlagSet, leftOut []string, visit func(*pflag.Flag, string)) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains([]string{"token", "username", "password", "v"}, f.Name) ||
			slices.Contains(leftOut, f.Name) {
			return
		}
		for _, value := range values(f) {
			visit(f, value)
		}
	})
}

// values returns the typed values of a flag.
func values(f *pflag.Flag) []string {
	list, ok := f.Value.(pflag.SliceValue)
	switch {
	case ok && f.Value.Type() == "stringSlice":
		var out []string
		for _, value := range list.GetSlice() {
			out = append(out, element(value))
		}
		return out
	case ok:
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// element returns one value of a comma-separated list, quoted as CSV where necessary.
func element(value string) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write([]string{value}) // which a Builder takes
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
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
