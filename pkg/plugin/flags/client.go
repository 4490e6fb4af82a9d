package flags

import "github.com/spf13/pflag"

// Client limits the requests to the API server. The zero value leaves it to the server, if it has API Priority and
// Fairness; cluster.Options has the limits for one that has not.
type Client struct {
	QPS   float32
	Burst int
}

// AddFlags registers the flags.
func (f *Client) AddFlags(flags *pflag.FlagSet) {
	flags.Float32Var(&f.QPS, "kube-api-qps", f.QPS, "Average number of requests per second to the API server. "+
		"By default there is no limit where the server has API Priority and Fairness, and else one of 50.")
	flags.IntVar(&f.Burst, "kube-api-burst", f.Burst, "Number of requests to the API server that may exceed the average at once; 300 by default.")
}
