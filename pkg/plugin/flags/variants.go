package flags

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Variants say on which objects that are not there, but could be, policies are compared.
type Variants struct {
	Variants int // at most so many
	Seed     uint64
}

// AddFlags registers the flags; usage says what --variants is for.
func (f *Variants) AddFlags(flags *pflag.FlagSet, usage string) {
	flags.IntVar(&f.Variants, "variants", f.Variants, usage)
	flags.Uint64Var(&f.Seed, "seed", 1, "Chooses which differences the variants combine; the same seed gives the same variants.")
}

// Check returns an error for a number that there cannot be.
func (f *Variants) Check() error {
	if f.Variants < 0 {
		return fmt.Errorf("--variants %d: must not be negative", f.Variants)
	}
	return nil
}
