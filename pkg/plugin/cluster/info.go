package cluster

import (
	"errors"
	"fmt"
	"regexp"

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

// userInfo is what a URL has before its host.
var userInfo = regexp.MustCompile(`(^|//)\S*@`)

// withoutPassword is a URL, or a text that quotes some, without the user and the password that a URL may have.
func withoutPassword(text string) string { return userInfo.ReplaceAllString(text, "$1") }

// unquoted is an error without the passwords of URLs in it.
func unquoted(err error) error {
	if text := err.Error(); text != withoutPassword(text) {
		return errors.New(withoutPassword(text))
	}
	return err
}

func infoOf(getter genericclioptions.RESTClientGetter, config *rest.Config) Info {
	info := Info{Server: withoutPassword(config.Host), User: config.Impersonate.UserName}
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
