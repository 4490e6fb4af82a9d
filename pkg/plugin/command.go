package plugin

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/convert"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fix"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/policies"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/test"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Main runs the program with the process's arguments, its own name first, and returns its exit code. A
// signal or the memory limit ends the process if the program does not end soon.
func Main(argv []string, streams genericiooptions.IOStreams) int {
	transport.GuardDefault()
	watched, unwatch := limit.Watch(context.Background(), process.SetMemoryLimit())
	defer unwatch()
	interrupts := &write.Interrupts{}
	ctx, stop := interrupts.Context(watched, func(ctx context.Context) {
		process.Abort(ctx, interrupts, streams.ErrOut)
	})
	defer stop()
	klog.SetLogger(logr.Discard()) // until -v asks for it: client-go also logs the errors that it returns
	name := displayName(argv[0], os.Getenv("_"))
	return Run(ctx, NewCommand(name, streams, interrupts), argv[1:], streams)
}

// Run executes a command of NewCommand, prints the error that it ends with, and returns the exit code.
func Run(ctx context.Context, c *cobra.Command, args []string, streams genericiooptions.IOStreams) int {
	c.SetArgs(args)
	called, err := c.ExecuteContextC(ctx)
	if err == nil && called.Name() == cobra.ShellCompRequestCmd {
		err = ctx.Err() // a completion has no errors of its own
	}
	err = process.OrInterrupted(ctx, nil, err)
	var quiet *process.Error
	if err != nil && (!errors.As(err, &quiet) || quiet.Err != nil) {
		process.PrintError(redact.NewWriter(streams.ErrOut), "", err)
	}
	return process.CodeOf(err)
}

// NewCommand returns the root command; name is what help and errors call the program. Interrupts may be nil.
func NewCommand(name string, streams genericiooptions.IOStreams,
	interrupts *write.Interrupts,
) *cobra.Command {
	c := &cobra.Command{
		Use:   "mutate",
		Short: "Preview and apply mutation policies on objects that already exist",
		Long: templates.LongDesc(`
			Preview and apply mutation policies on objects that already exist.

			The objects are read with your own kubeconfig and the policies are evaluated on
			this machine: nothing has to be installed in the cluster. A preview shows, field by
			field, what would change and which rule of which policy does it; it cannot write.`),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetIn(streams.In)
	c.SetOut(streams.Out)
	c.SetErr(streams.ErrOut)
	c.Version = versionInfo().String()
	c.SetVersionTemplate("{{.Version}}\n")
	var level int // as in kubectl: 0 is nothing, 6 shows requests, 8 shows bodies
	c.PersistentFlags().IntVarP(&level, "v", "v", 0, "Log level: 6 logs each request to the API server with its status and time, 7 headers, 8 bodies. Credentials and values of Secrets are never logged.")
	config := flags.NewConfig(func(c *rest.Config) *rest.Config {
		c.UserAgent = process.UserAgent()
		return cluster.Wrap(c)
	})
	config.AddFlags(c.PersistentFlags())
	c.PersistentFlags().Bool("help", false, "Show the whole help of a command; -h shows the most important part of it.")
	c.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		factory.LogTo(redact.NewWriter(streams.ErrOut))
		level := level
		if f := c.Flag("show-secrets"); f == nil || f.Value.String() != "true" {
			level = min(level, cluster.MaxLogLevel)
		}
		return startLog(level)
	}
	evaluate := flags.NewEvaluate(config)
	evaluate.Streams, evaluate.Interrupts = streams, interrupts
	c.AddCommand(
		preview.NewCommand(evaluate, name),
		preview.NewExplainCommand(evaluate, name),
		compare.NewCommand(evaluate, name),
		convert.NewCommand(evaluate, name),
		apply.NewCommand(evaluate, name),
		fix.NewCommand(evaluate, name),
		preview.NewPlanCommand(name, streams),
		undo.NewCommand(evaluate, name),
		undo.NewHistoryCommand(config, name, streams),
		test.NewCommand(evaluate, name),
		policies.NewCommand(evaluate, name),
		policies.NewRBACCommand(evaluate, name),
		policies.NewJobCommand(evaluate, name),
		preview.NewSummaryCommand(evaluate, name),
		NewCompletionCommand(name, streams),
		NewVersionCommand(name, streams),
		newOptionsCommand(streams),
	)
	for _, sub := range c.Commands() {
		if sub.Flags().Lookup("policy") != nil && sub.Name() != "test" { // whose arguments are files
			takePolicies(sub)
		}
	}
	Add(c, config)
	templates.ActsAsRootCommand(c, nil)
	c.SetFlagErrorFunc(flagError) // the template's knows no suggestions
	correctHelp(c, name)
	return c
}

// flagError adds a suggestion, and a pointer to the help, to the error of a flag.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	hint := ""
	if errors.As(err, &unknown) {
		name := engine.Nearest(unknown.GetSpecifiedName(), func(yield func(string) bool) {
			done := false
			c.Flags().VisitAll(func(f *pflag.Flag) { done = done || !f.Hidden && !yield(f.Name) })
		})
		if name != "" {
			hint = "\nDid you mean --" + name + "?"
		}
	}
	return fmt.Errorf("%w%s\nSee '%s --help'", err, hint, c.CommandPath())
}

// takePolicies makes a command treat the files in front of its arguments as policies.
func takePolicies(c *cobra.Command) {
	check, run := c.Args, c.RunE
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	var rest []string // the other arguments
	c.Args = func(c *cobra.Command, args []string) (err error) {
		if rest, err = flags.TakePolicies(c.Flags(), args); err != nil {
			return err
		}
		return check(c, rest)
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return run(c, rest) }
}

// startLog makes klog write to the writer of factory.LogTo at a level of -v; level 0 logs nothing.
func startLog(level int) error {
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	if level <= 0 {
		return fs.Set("v", "0")
	}
	err := errors.Join(
		fs.Set("v", strconv.Itoa(level)),
		fs.Set("logtostderr", "false"),     // it would write past the masker
		fs.Set("stderrthreshold", "FATAL"), // nor an error
		fs.Set("one_output", "true"),       // a warning once, not in the log of each level
	)
	klog.ClearLogger()
	return err
}

// paragraph matches the blank that kubectl's help puts in front of each paragraph but the first.
var paragraph = regexp.MustCompile(`(?m)^ (\S)`)

const maxBrief = 40 // lines of the help that -h prints

// correctHelp works around faults of kubectl's help template: one line shows only the first word of the
// program's name, and paragraphs begin with a blank. It also makes -h print only the most important part of
// a long help: no flag has this shorthand, so pflag asks for help without setting --help.
func correctHelp(root *cobra.Command, name string) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		out := c.OutOrStdout()
		var text bytes.Buffer
		if !c.HasSubCommands() {
			printHelp(&text, c, name)
		} else {
			c.SetOut(&text)
			help(c, args)
			c.SetOut(out)
			named := strings.Replace(text.String(), `Use "`+root.Name()+" ", `Use "`+name+" ", 1)
			text.Reset()
			text.WriteString(paragraph.ReplaceAllString(named, "$1"))
		}
		if isBrief(c, args) && bytes.Count(text.Bytes(), []byte("\n")) > maxBrief {
			printBrief(out, c)
			return
		}
		_, _ = text.WriteTo(out) // there is nobody else to tell
	})
}

// isBrief reports whether help was requested with -h: the command help passes no arguments, and --help is
// set.
func isBrief(c *cobra.Command, args []string) bool { return len(args) > 0 && !c.Flag("help").Changed }

// printBrief prints the usage, three examples and the common flags of a command, one line each.
func printBrief(out io.Writer, c *cobra.Command) {
	examples := strings.Split(strings.TrimRight(c.Example, " \n"), "\n  \n")
	common := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	common.SortFlags = false
	for _, name := range topics[0].flags {
		if f := c.LocalNonPersistentFlags().Lookup(name); f != nil && !f.Hidden {
			line := *f
			line.Usage, _, _ = strings.Cut(strings.TrimSuffix(f.Usage, "."), ". ")
			common.AddFlag(&line)
		}
	}
	fmt.Fprintf(out, "%s\n\nUsage:\n  %s [options]\n\nExamples:\n%s\n\n%s:\n%s\nUse \"%s --help\" for all options and examples.\n",
		c.Short, c.UseLine(), strings.Join(examples[:min(len(examples), 3)], "\n\n"), topics[0].title,
		common.FlagUsages(), c.CommandPath())
}

// newOptionsCommand prints the global flags, which the help of other commands leaves out, as in kubectl.
func newOptionsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	c := &cobra.Command{
		Use:   "options",
		Short: "Print the flags that all commands share",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Usage() },
	}
	c.SetOut(streams.Out)
	c.SetErr(streams.Out) // usage goes to the error stream by default
	templates.UseOptionsTemplates(c)
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		text := c.UsageString()
		if isBrief(c, args) {
			text = fmt.Sprintf("%s\n\nUsage:\n  %s\n", c.Short, c.CommandPath())
		}
		c.Print(text)
	})
	return c
}

// displayName returns what help and errors call the program. kubectl runs a plugin by its absolute path and
// leaves the shell's `_` variable, the command that was typed, pointing to kubectl. File names follow
// kubectl's rule: a dash starts a sub-command and an underscore stands for a dash.
func displayName(argv0, typed string) string {
	base := commandName(argv0)
	called, isPlugin := strings.CutPrefix(base, "kubectl-")
	if !isPlugin || !filepath.IsAbs(argv0) || commandName(typed) == base {
		return base
	}
	return "kubectl " + strings.ReplaceAll(strings.ReplaceAll(called, "-", " "), "_", "-")
}

func commandName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".exe")
}

// topic is a heading of the help with its flags in order.
type topic struct {
	title string
	flags []string
}

// topics lists every flag of every command, the most common first.
var topics = []topic{ //nolint:gochecknoglobals // an immutable table
	{"Common options", []string{
		"policy", "from-cluster", "with", "to", "filename", "all-namespaces", "namespaces", "all", "selector",
		"contexts", "for", "run", "file-name", "update", "init", "output", "explain", "save", "plan",
		"resume", "dry-run",
		"yes", "watch", "write", "check",
	}},
	{"Policies", []string{
		"only", "skip", "values", "strict", "assume-binding", "allow-unknown-kinds",
		"allow-http", "allow-registry", "annotate", "engine-view",
	}},
	{"Objects", []string{
		"offline", "kustomize", "recursive", "world", "exclude", "exclude-namespaces",
		"field-selector", "git-diff", "skip-managed", "max-objects", "percent", "percent-seed", "shard", "variants",
		"seed", "expand", "unverified", "replication-controllers",
	}},
	{"The request that policies see", []string{"operation", "request-user", "request-group"}},
	{"Checks and writes", []string{
		"validate", "max-changes", "skip-rejected", "include-managed", "take-from", "force-conflicts",
		"field-manager", "on-error", "max-failures",
		"batch-size", "pause", "wait", "timeout", "concurrency", "events", "journal", "journal-secrets",
		"journal-max-age", "journal-max-size", "plan-max-age",
		"allow-secrets-in-files",
	}},
	{"The Job", []string{"apply", "schedule", "shards", "image", "claim"}},
	{"Roles", []string{"name", "user", "group", "serviceaccount"}},
	{"What is printed", []string{
		"report", "write-reports", "metrics", "metrics-listen", "query", "template", "group-by", "list-all",
		"context-lines", "color", "show-secrets", "quiet", "exit-code",
	}},
	{"Requests to the server", []string{"max-clusters-at-once", "chunk-size", "kube-api-qps", "kube-api-burst"}},
}

// topicOf returns the topic of a flag and its position there; the last topic for an unlisted flag.
func topicOf(flag string) (int, int) {
	for i := range topics {
		if at := slices.Index(topics[i].flags, flag); at >= 0 {
			return i, at
		}
	}
	return len(topics) - 1, len(flag)
}

// printHelp prints the help of a command without sub-commands: kubectl's, with the flags grouped by topic.
func printHelp(out io.Writer, c *cobra.Command, root string) {
	fmt.Fprintf(out, "%s\n\n", paragraph.ReplaceAllString(strings.TrimSpace(c.Long), "$1"))
	if c.HasExample() {
		fmt.Fprintf(out, "Examples:\n%s\n\n", strings.ReplaceAll(strings.TrimRight(c.Example, " \n"),
			"\n  \n", "\n\n"))
	}
	printFlags(out, c.LocalNonPersistentFlags())
	fmt.Fprintf(out, "Usage:\n  %s [options]\n\nUse \"%s options\" for a list of global command-line options (applies to all commands).\n", c.UseLine(), root)
}

// printFlags prints the flags of each topic below its title.
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
