package flags

import "github.com/spf13/pflag"

// Report names the report files that a run writes in addition to what it prints.
type Report struct {
	Reports []string // FORMAT=FILE
	// Written are the reports that a preview keeps in the cluster, FORMAT or FORMAT=NAME; empty for none.
	Written string
}

// AddClusterFlag registers the flag of a preview.
func (f *Report) AddClusterFlag(flags *pflag.FlagSet) {
	flags.StringVar(&f.Written, "write-reports", "", "Also keep a report on each object in the cluster, as FORMAT or FORMAT=NAME: policyreport or openreports, in a set of this NAME, kubectl-mutate by default. The preview then writes these reports, and still nothing else.")
}

// AddFlags registers the flag; names lists the formats that the command knows.
func (f *Report) AddFlags(flags *pflag.FlagSet, names string) {
	flags.StringArrayVar(&f.Reports, "report", nil, "Also write a report, as FORMAT=FILE: one of "+names+". May be given more than once. FILE - is standard output, instead of what -o prints; github without a FILE goes to standard error.")
}
