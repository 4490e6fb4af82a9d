package plugin

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestEveryFlagHasATopic(t *testing.T) {
	used := map[string]bool{"help": true}
	var of func(c *cobra.Command)
	of = func(c *cobra.Command) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { used[f.Name] = true })
		for _, sub := range c.Commands() {
			of(sub)
		}
	}
	of(NewCommand("kubectl mutate", genericiooptions.NewTestIOStreamsDiscard(), nil))
	known := map[string]bool{"help": true}
	for _, topic := range topics {
		for _, flag := range topic.flags {
			if known[flag] {
				t.Errorf("--%s has two topics", flag)
			}
			known[flag] = true
			if !used[flag] {
				t.Errorf("--%s is of no command", flag)
			}
		}
	}
	for flag := range used {
		if !known[flag] {
			t.Errorf("--%s has no topic", flag)
		}
	}
}

// Of each command, -h prints no more than fits on a screen, and --help everything.
func TestBriefHelp(t *testing.T) {
	t.Parallel()
	help := func(c *cobra.Command, flag string) string {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		args := append(strings.Fields(c.CommandPath())[1:], flag)
		if code := Run(t.Context(), NewCommand("mutate", streams, nil), args, streams); code != 0 {
			t.Errorf("%s: exit code %d", args, code)
		}
		return out.String()
	}
	var of func(c *cobra.Command)
	of = func(c *cobra.Command) {
		brief, whole := help(c, "-h"), help(c, "--help")
		if n := strings.Count(brief, "\n"); n < 3 || n > 40 {
			t.Errorf("%s -h has %d lines", c.CommandPath(), n)
		}
		if brief != whole && (!strings.Contains(brief, "\nUsage:\n") || strings.Count(brief, "\n  # ") > 3 ||
			c.Name() != "options" && !strings.Contains(brief, c.CommandPath()+" --help") || len(whole) < len(brief)) {
			t.Errorf("%s -h prints\n%s", c.CommandPath(), brief)
		}
		for _, sub := range c.Commands() {
			of(sub)
		}
	}
	of(NewCommand("mutate", genericiooptions.NewTestIOStreamsDiscard(), nil))
}

// The fields that help names are those of the schemas.
func TestHelpNamesFieldsOfTheReport(t *testing.T) {
	for command, from := range map[string]struct{ after, schema string }{
		"preview":        {"--query has ", "report"},
		"apply-existing": {"-o yaml has ", "apply-report"},
	} {
		t.Run(command, func(t *testing.T) { helpNames(t, command, from.after, "../../docs/"+from.schema+".schema.json") })
	}
}

// helpNames holds the words of a sentence in the help of a command against a schema.
func helpNames(t *testing.T, command, after, file string) {
	t.Helper()
	schema, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := NewCommand("kubectl mutate", genericiooptions.NewTestIOStreamsDiscard(), nil).Find([]string{command})
	if err != nil {
		t.Fatal(err)
	}
	_, named, _ := strings.Cut(c.Long, after)
	named, _, found := strings.Cut(named, ".")
	words := regexp.MustCompile(`[a-z]{2,}`).FindAllString(strings.ReplaceAll(named, " and", ","), -1)
	if !found || len(words) < 10 {
		t.Fatalf("the help names %q", words)
	}
	for _, word := range words {
		if !strings.Contains(string(schema), `"`+word+`": {`) {
			t.Errorf("%s is no field of the report", word)
		}
	}
}
