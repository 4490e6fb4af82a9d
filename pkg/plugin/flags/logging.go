package flags

import "github.com/spf13/pflag"

// verbosity is the name of the flag of Logging.
const verbosity = "v"

// Logging is how much a command logs of what it does.
type Logging struct {
	Level int // as in kubectl: 0 is nothing, 6 shows requests, 8 shows bodies
}

// AddFlags registers the flag.
func (f *Logging) AddFlags(flags *pflag.FlagSet) {
	flags.IntVarP(&f.Level, verbosity, "v", f.Level, "Log level: 6 logs each request to the API server with its status and time, 7 headers, 8 bodies. Credentials and values of Secrets are never logged.")
}
