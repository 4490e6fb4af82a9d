package flags

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// The values of --on-error.
const (
	StopOnError     = "stop"
	ContinueOnError = "continue"
)

// Write has the flags of the commands that write.
type Write struct {
	Yes          bool
	DryRun       string
	FieldManager string

	journal.Allowed
	Concurrency int // as write.Verifier has it
	MaxChanges  int // as write.Prompt has it
	Pace        write.Pace
	OnError     string

	Journal        string
	JournalSecrets bool
	// Watches is for a run that goes on, which has the journals of a watch.
	Watches bool
	// JournalMaxAge and JournalMaxSize limit the kept journals.
	JournalMaxAge  time.Duration
	JournalMaxSize resource.QuantityValue
}

// NewWrite returns the defaults.
func NewWrite() Write {
	return Write{
		DryRun: string(write.DryRunNone), FieldManager: write.DefaultFieldManager,
		OnError: StopOnError, Concurrency: 8, MaxChanges: 100, Pace: write.Pace{Timeout: 10 * time.Minute},
		JournalMaxAge:  7 * 24 * time.Hour,
		JournalMaxSize: resource.QuantityValue{Quantity: resource.MustParse("32Mi")},
	}
}

// AddFlags registers the flags.
func (f *Write) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.Yes, "yes", "y", false, "Write without a prompt.")
	flags.StringVar(&f.DryRun, "dry-run", f.DryRun, `"none", "client" (plan the requests and send none), or "server" (send them as dry runs).`)
	f.AddGuardFlags(flags)
	flags.StringVar(&f.Journal, "journal", "", "File for the record of what is written, which --resume and undo read. By default it is kept in the user's state directory.")
	flags.BoolVar(&f.JournalSecrets, "journal-secrets", false, "Keep values of Secrets in the journal, so that they can be undone too.")
}

// AddJournalFlags registers the flags that limit the kept journals.
func (f *Write) AddJournalFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&f.JournalMaxAge, "journal-max-age", f.JournalMaxAge, "Remove older journals from the user's state directory: with --watch those of watches, else all, if this is given. 0 keeps them.")
	flags.Var(&f.JournalMaxSize, "journal-max-size", "Remove the oldest journals that are more than this together, as --journal-max-age does. 0 keeps them.")
}

// Prune removes journals from a directory as the flags say, those of watches for a watch, but never kept.
func (f *Write) Prune(set *pflag.FlagSet, directory, kept string) error {
	var before time.Time
	var size int64
	if f.JournalMaxAge > 0 && (f.Watches || set.Changed("journal-max-age")) {
		before = time.Now().Add(-f.JournalMaxAge)
	}
	if f.Watches || set.Changed("journal-max-size") {
		size = f.JournalMaxSize.Value()
	}
	if before.IsZero() && size == 0 {
		return nil
	}
	return journal.Prune(directory, before, size, f.Watches, kept)
}

// AddGuardFlags registers the flags that say which writes are allowed, and how fast.
func (f *Write) AddGuardFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.FieldManager, "field-manager", f.FieldManager, "Name of the manager that will own the changed fields.")
	flags.BoolVar(&f.ForceConflicts, "force-conflicts", false, "Take over fields that another manager applied.")
	flags.StringSliceVar(&f.TakeFrom, "take-from", nil, "Take over the fields of this manager, and of no other. May be given more than once.")
	flags.BoolVar(&f.IncludeManaged, "include-managed", false, "Also write objects that Argo CD, Flux, Helm, kapp or an owner controller manages, and may revert.")
	flags.BoolVar(&f.SkipRejected, "skip-rejected", false, "Skip the objects that the server rejects, instead of writing nothing.")
	flags.IntVar(&f.Concurrency, "concurrency", f.Concurrency, "Number of objects that are verified or written at the same time.")
	flags.StringVar(&f.OnError, "on-error", f.OnError, `When a write fails: "stop", or "continue" with the other objects, and with the other clusters.`)
	flags.IntVar(&f.Pace.MaxFailures, "max-failures", 0, "Stop after this number of failed writes; 0 leaves it to --on-error.")
	flags.IntVar(&f.MaxChanges, "max-changes", f.MaxChanges, "Before more objects than this are written, ask for the name of the context; with --yes, refuse. 0 means no limit.")
	flags.IntVar(&f.Pace.BatchSize, "batch-size", 0, "Write this number of objects at a time, and pause after each batch; 0 writes all in one batch.")
	flags.DurationVar(&f.Pace.Pause, "pause", 0, "How long to pause between batches.")
	flags.BoolVar(&f.Pace.Wait, "wait", false, "After each batch, wait until the written Deployments, StatefulSets and DaemonSets have rolled out.")
	flags.DurationVar(&f.Pace.Timeout, "timeout", f.Pace.Timeout, "How long to wait for the rollouts of a batch.")
}

// Validate returns an error for values that are out of range, or contradict each other.
func (f *Write) Validate() error {
	switch dryRun := write.DryRun(f.DryRun); {
	case dryRun != write.DryRunNone && dryRun != write.DryRunClient && dryRun != write.DryRunServer:
		return fmt.Errorf("--dry-run %q: use none, client or server", f.DryRun)
	case f.FieldManager == "":
		return errors.New("--field-manager must not be empty")
	case f.OnError != StopOnError && f.OnError != ContinueOnError:
		return fmt.Errorf("--on-error %q: use stop or continue", f.OnError)
	case f.Concurrency < 1:
		return fmt.Errorf("--concurrency %d: use 1 or more", f.Concurrency)
	case f.Pace.MaxFailures < 0, f.MaxChanges < 0, f.Pace.BatchSize < 0:
		return errors.New("--max-failures, --max-changes and --batch-size must not be negative")
	case f.JournalMaxAge < 0, f.JournalMaxSize.Sign() < 0:
		return errors.New("--journal-max-age and --journal-max-size must not be negative")
	case f.Pace.Pause > 0 && f.Pace.BatchSize == 0:
		return errors.New("--pause is between batches: set --batch-size")
	}
	return nil
}

// Rehearses reports whether the run is a dry run.
func (f *Write) Rehearses() bool { return write.DryRun(f.DryRun) != write.DryRunNone }

// Rehearsal returns the kind of dry run, "client" or "server", and "" for a run that writes.
func (f *Write) Rehearsal() string {
	if !f.Rehearses() {
		return ""
	}
	return f.DryRun
}

// WritePace returns the Pace with --on-error applied.
func (f *Write) WritePace() write.Pace {
	p := f.Pace
	if p.MaxFailures == 0 && f.OnError == StopOnError {
		p.MaxFailures = 1
	}
	return p
}

// Record has the flags that name a plan or journal whose changes are written.
type Record struct {
	Plan       string
	PlanMaxAge time.Duration
	Resume     string
}

// AddFlags registers the flags.
func (f *Record) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Plan, "plan", "", "Make exactly the changes of this plan, which preview --save has written, without a prompt. An object that has drifted from it is skipped. Names, -n, -l and --exclude choose a part; the rest stays in it. Of a directory all plans, cluster by cluster.")
	flags.DurationVar(&f.PlanMaxAge, "plan-max-age", f.PlanMaxAge, "Maximum age of the plan.")
	flags.StringVar(&f.Resume, "resume", "", "Continue an interrupted run: show what is left, ask, and write. The ID of the run, its journal, or latest; or the directory of --plan.")
}

// Given reports whether a plan or a journal is given.
func (f *Record) Given() bool { return f.Plan != "" || f.Resume != "" }

// settled lists the flags that a plan or journal settles: setting one can only be a mistake.
var settled = []string{ //nolint:gochecknoglobals // an immutable table
	"policy", "from-cluster", "only", "skip", "values", "all-namespaces", "namespaces", "exclude",
	"exclude-namespaces", "selector", "field-selector",
	"world", "operation", "request-user", "request-group", "annotate", "assume-binding", "namespace",
	"max-objects", "percent", "percent-seed", "shard",
}

// chosen lists the settled flags that choose a part of a plan.
var chosen = []string{"all-namespaces", "namespaces", "namespace", "exclude", "exclude-namespaces", "selector"} //nolint:gochecknoglobals // an immutable table

// Check returns an error for flags and arguments that the plan or journal settles. A single plan may be
// applied in parts.
func (f *Record) Check(flags *pflag.FlagSet, args []string, several bool) error {
	name, parts := "--plan", ""
	switch {
	case f.Resume != "":
		name = "--resume"
	case several:
		parts = ", or choose a part of one of its plans"
	}
	if f.Plan != "" && f.Resume != "" {
		return errors.New("only one of --plan and --resume can be used")
	}
	inParts := f.Plan != "" && !several
	if len(args) > 0 && !inParts {
		return fmt.Errorf("%s writes exactly what was planned: leave out %q%s", name, args[0], parts)
	}
	for _, flag := range settled {
		if flags.Changed(flag) && !(inParts && slices.Contains(chosen, flag)) {
			return fmt.Errorf("%s writes exactly what was planned: leave out --%s", name, flag)
		}
	}
	return nil
}

// Watch has the flags of a run that follows changes.
type Watch struct {
	On     bool
	Listen string // HOST:PORT for metrics and readiness; empty for none
}

// AddFlag registers --watch with its usage.
func (f *Watch) AddFlag(flags *pflag.FlagSet, says string) {
	flags.BoolVarP(&f.On, "watch", "w", false, says)
}

// AddListenFlag registers the flag for metrics and readiness.
func (f *Watch) AddListenFlag(flags *pflag.FlagSet) {
	flags.StringVar(&f.Listen, "metrics-listen", "", "With --watch: HOST:PORT on which to serve OpenMetrics at /metrics, and at /readyz whether everything is watched. Without a HOST it is 127.0.0.1.")
}

// watchable lists the fields of a field selector that never change on an object.
var watchable = []string{"metadata.name", "metadata.namespace"} //nolint:gochecknoglobals // an immutable table

// once lists the flags for what is written at the end of a run.
var once = []string{"report", "save", "journal", "explain", "plan", "resume", "dry-run", "max-objects", "max-failures", "shard", "write-reports"} //nolint:gochecknoglobals // an immutable table

// Validate returns an error for flags that a watch cannot follow; formats lists those of -o that print one
// change after another.
func (f *Watch) Validate(set *pflag.FlagSet, e *Evaluate, format string, formats ...string) error {
	if f.Listen != "" {
		if _, _, err := net.SplitHostPort(f.Listen); err != nil {
			return fmt.Errorf("--metrics-listen %q: use HOST:PORT, such as 127.0.0.1:9090 or :9090", f.Listen)
		}
		if !f.On {
			return errors.New("--metrics-listen is for a run that goes on: add --watch, or use --metrics FILE")
		}
	}
	if !f.On {
		return nil
	}
	switch name := firstOf(set, once...); {
	case name != "":
		return fmt.Errorf("--%s is for one run: leave it out with --watch", name)
	case e.Objects.Offline():
		return errors.New("--watch follows a cluster: leave out -f/--filename and -k/--kustomize")
	case slices.Contains(e.Policies.Paths, stdio):
		return errors.New("--watch reads policies again when they change: name a file or directory, not -p -")
	case !slices.Contains(formats, format):
		return fmt.Errorf("-o %s shows a run as a whole: with --watch use one of %s", format, strings.Join(formats, ", "))
	}
	_, fields, err := e.Objects.Selectors()
	if err != nil || fields == nil {
		return err
	}
	for _, r := range fields.Requirements() {
		if !slices.Contains(watchable, r.Field) {
			return fmt.Errorf("--field-selector %s: an object that leaves the selection looks like a deleted one to a watch; use %s", r.Field, strings.Join(watchable, " or "))
		}
	}
	return nil
}
