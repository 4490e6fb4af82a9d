package flags

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Validation is what checks the changes of a preview; empty is the default of the run.
type Validation string

// The validations.
const (
	ValidateServer Validation = "server"
	ValidateClient Validation = "client"
	ValidateNone   Validation = "none"
)

// String implements pflag.Value.
func (v *Validation) String() string { return string(*v) }

// Type implements pflag.Value.
func (v *Validation) Type() string { return "server|client|none" }

// Set implements pflag.Value.
func (v *Validation) Set(text string) error {
	switch to := Validation(text); to {
	case ValidateServer, ValidateClient, ValidateNone:
		*v = to
		return nil
	}
	return fmt.Errorf("use server, client or none")
}

// AddFlag registers the flag. Without a value it is ValidateServer.
func (v *Validation) AddFlag(flags *pflag.FlagSet, usage string) {
	flags.Var(v, "validate", usage)
	flags.Lookup("validate").NoOptDefVal = string(ValidateServer)
}
