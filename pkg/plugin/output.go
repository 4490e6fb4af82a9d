package plugin

import (
	"github.com/spf13/cobra"
)

// OutputFlags choose what is printed.
type OutputFlags struct {
	Format      string
	Query       string
	ShowSecrets bool
}

// AddFlags registers the flags; formats lists those that the command knows.
func (f *OutputFlags) AddFlags(c *cobra.Command, formats string) {
	c.Flags().StringVarP(&f.Format, "output", "o", f.Format, "Output format: one of "+formats+".")
	c.Flags().StringVar(&f.Query, "query", "", "JMESPath expression to apply to the report, with -o json or -o yaml.")
	c.Flags().BoolVar(&f.ShowSecrets, "show-secrets", false, "Print the values of Secrets, which are masked otherwise.")
}
