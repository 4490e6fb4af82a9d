package flags

import "github.com/spf13/pflag"

// Context has the flags for what policies may read in addition to objects.
type Context struct {
	Values        string
	AllowHTTP     bool
	AllowRegistry bool
}

// AddFlags registers the flags.
func (f *Context) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Values, "values", "", "File of values for what policies read, in the format of the Kyverno CLI (kind Values): variables, labels of Namespaces, API responses.")
	flags.BoolVar(&f.AllowHTTP, "allow-http", false, "Let policies call the web services that they name. Your cluster credentials are never sent.")
	flags.BoolVar(&f.AllowRegistry, "allow-registry", false, "Let policies look up images in their registries, with the credentials of your docker configuration.")
}
