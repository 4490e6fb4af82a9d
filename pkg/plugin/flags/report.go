package flags

import "github.com/spf13/pflag"

// Report names the report files that a run writes in addition to what it prints.
type Report struct{ Reports []string } // FORMAT=FILE

// AddFlags registers the flag; names lists the formats that the command knows.
func (f *Report) AddFlags(flags *pflag.FlagSet, names string) {
	flags.StringArrayVar(&f.Reports, "report", nil, "Also write a report, as FORMAT=FILE: one of "+names+". May be given more than once. FILE - is standard output, instead of what -o prints; github without a FILE goes to standard error.")
}
