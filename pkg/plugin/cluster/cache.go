package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// way is how a context reaches a cluster. A proxy may have one address for several, and tell them apart by the name in the TLS
// handshake, by how it is reached, or by the user.
type way struct{ server, tlsName, proxy, user string }

func wayOf(config *clientcmdapi.Config, c *clientcmdapi.Context) way {
	out := way{user: c.AuthInfo}
	if at := config.Clusters[c.Cluster]; at != nil {
		out.server, out.tlsName, out.proxy = at.Server, at.TLSServerName, at.ProxyURL
	}
	return out
}

// separateCache gives a context a cache directory of its own where the kubeconfig reaches the same address in other ways as well:
// what kubectl caches of the kinds of a cluster is named after its address alone. The others share kubectl's.
func separateCache(flags *genericclioptions.ConfigFlags) {
	config, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil || flags.CacheDir == nil {
		return // in a cluster there is no kubeconfig
	}
	typed := func(flag *string) string {
		if flag == nil {
			return ""
		}
		return *flag
	}
	context := config.Contexts[cmp.Or(typed(flags.Context), config.CurrentContext)]
	if context == nil {
		return
	}
	context = context.DeepCopy()
	context.Cluster = cmp.Or(typed(flags.ClusterName), context.Cluster)
	context.AuthInfo = cmp.Or(typed(flags.AuthInfoName), context.AuthInfo)
	own := wayOf(&config, context)
	own.server, own.tlsName = cmp.Or(typed(flags.APIServer), own.server), cmp.Or(typed(flags.TLSServerName), own.tlsName)
	own.proxy = cmp.Or(typed(flags.ProxyURL), own.proxy)
	shared := false
	for _, other := range config.Contexts {
		at := wayOf(&config, other)
		shared = shared || at.server == own.server && at != own
	}
	if !shared {
		return
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{own.server, own.tlsName, own.proxy, own.user}, "\x00")))
	name := filepath.Join("kubectl-mutate", hex.EncodeToString(sum[:8]))
	base := cmp.Or(*flags.CacheDir, *genericclioptions.NewConfigFlags(false).CacheDir)
	if !strings.HasSuffix(base, name) { // of an earlier client
		*flags.CacheDir = filepath.Join(base, name)
	}
}
