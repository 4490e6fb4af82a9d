package flags

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Canary has the flags that keep a run to some of the objects.
type Canary struct {
	MaxObjects, Percent int
	PercentSeed         string
	Shard               engine.Shard
}

// AddFlags registers the flags.
func (f *Canary) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&f.MaxObjects, "max-objects", 0, "Change this many objects at most: the run ends where one more would change.")
	flags.IntVar(&f.Percent, "percent", 0, "Evaluate this percentage of the objects, from 1 to 100: the same ones in each run, those of 10 among those of 20.")
	flags.StringVar(&f.PercentSeed, "percent-seed", "", "Any text; another one chooses other objects for --percent.")
}

// AddShardFlag registers the flag of a run that is one of several.
func (f *Canary) AddShardFlag(flags *pflag.FlagSet) {
	flags.TextVar(&f.Shard, "shard", f.Shard, "Evaluate one of several parts of the objects, as INDEX/COUNT, such as 0/4: those of the namespaces whose 64-bit FNV-1a modulo COUNT is INDEX, and by their own names those without a namespace.")
}

// Validate returns an error for values that choose nothing.
func (f *Canary) Validate() error {
	switch {
	case f.MaxObjects < 0:
		return fmt.Errorf("--max-objects %d: must not be negative", f.MaxObjects)
	case f.Percent < 0 || f.Percent > 100:
		return fmt.Errorf("--percent %d: must be between 1 and 100", f.Percent)
	case f.PercentSeed != "" && f.Percent == 0:
		return fmt.Errorf("--percent-seed %s: is for --percent, which is missing", f.PercentSeed)
	}
	return nil
}
