package cluster

import (
	"fmt"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Info names the cluster of a Client and its user, for headings and prompts. What the
// kubeconfig does not have is empty.
type Info struct {
	Context string
	Server  string
	User    string
}

// String names the cluster for a prompt, on one line: "context prod (https://10.0.0.1:6443)".
func (i Info) String() string {
	if i.Context == "" {
		return redact.EscapeLine(i.Server)
	}
	return redact.EscapeLine(fmt.Sprintf("context %s (%s)", i.Context, i.Server))
}

// Info describes the connection.
func (c *Client) Info() Info { return c.info }

func infoOf(getter genericclioptions.RESTClientGetter, config *rest.Config) Info {
	info := Info{Server: config.Host, User: config.Impersonate.UserName}
	raw, err := getter.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return info // in a cluster there is no kubeconfig
	}
	info.Context = raw.CurrentContext
	// The loader does not apply the --context flag to the raw configuration.
	if flags, ok := getter.(*genericclioptions.ConfigFlags); ok && flags.Context != nil && *flags.Context != "" {
		info.Context = *flags.Context
	}
	if context := raw.Contexts[info.Context]; context != nil && info.User == "" {
		info.User = context.AuthInfo
	}
	return info
}
