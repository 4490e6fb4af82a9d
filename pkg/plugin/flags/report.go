package flags

import "github.com/spf13/pflag"

// Report name the files for programs and reviewers that a run writes beside
// what it prints.
type Report struct{ Reports []string } // FORMAT=FILE

// AddFlags registers the flag; names lists the formats that the command knows.
func (f *Report) AddFlags(flags *pflag.FlagSet, names string) {
	flags.StringArrayVar(&f.Reports, "report", nil, "Also write a report, as FORMAT=FILE: one of "+names+". May be given more than once. The FILE - is standard output, in the place of what -o prints; github without a FILE goes to standard error.")
}
