package flags

import "github.com/spf13/pflag"

// Client limits the requests to the API server.
type Client struct {
	QPS   float32
	Burst int
}

// NewClient returns limits that let a large cluster be read in reasonable
// time; client-go's own 5 and 10 would make 1,000 objects a matter of minutes.
func NewClient() Client { return Client{QPS: 50, Burst: 300} }

// AddFlags registers the flags.
func (f *Client) AddFlags(flags *pflag.FlagSet) {
	flags.Float32Var(&f.QPS, "kube-api-qps", f.QPS, "Average number of requests per second to the API server.")
	flags.IntVar(&f.Burst, "kube-api-burst", f.Burst, "Number of requests to the API server that may exceed the average at once.")
}
