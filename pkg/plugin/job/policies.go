package job

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

const (
	// maxPolicy is what a server takes as the content of a ConfigMap.
	maxPolicy = 1 << 20
	// maxApplied is how much is put into one ConfigMap, as JSON: kubectl apply also keeps it in an
	// annotation, and those of an object may have 256 KiB.
	maxApplied = 240 << 10
	// maxConfigMaps is how many may be mounted.
	maxConfigMaps = 500
)

// configMaps are the policies, as many to each as kubectl apply takes. A note names one that only a server-side
// apply takes.
func (s *Spec) configMaps() (out []*corev1.ConfigMap, notes []string, err error) {
	size := 0
	for i, d := range s.Policies {
		if d.Key.IsSecret() {
			return nil, nil, fmt.Errorf("%s: Secret %s: who reads ConfigMaps would read it; leave it out of -p: inside the cluster, policies read the Secrets of the cluster", d.Origin, d.Key.Name)
		}
		text, err := yaml.Marshal(d.Object().Object)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.Origin, err)
		}
		if len(text) > maxPolicy {
			return nil, nil, fmt.Errorf("%s: %d bytes are more than a ConfigMap takes (%d): divide the policy, or install it in the cluster and use --from-cluster", d.Origin, len(text), maxPolicy)
		}
		quoted, _ := json.Marshal(string(text)) // a string has no way to fail
		if len(quoted) > maxApplied {
			notes = append(notes, d.Origin+" is too large for a client-side apply: use kubectl apply --server-side")
		}
		if size += len(quoted); len(out) == 0 || size > maxApplied {
			if len(out) == maxConfigMaps {
				return nil, nil, fmt.Errorf("-p: the policies need more than %d ConfigMaps: install them in the cluster and use --from-cluster", maxConfigMaps)
			}
			out = append(out, s.configMap(len(out)))
			size = len(quoted)
		}
		out[len(out)-1].Data[fileName(i, d)] = string(text)
	}
	return out, notes, nil
}

func (s *Spec) configMap(index int) *corev1.ConfigMap {
	name := s.Name + policiesSuffix
	if index > 0 {
		name += fmt.Sprintf("-%d", index+1)
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: s.metadata(name), Data: map[string]string{},
	}
}

// notInKeys matches what the key of a ConfigMap must not have.
var notInKeys = regexp.MustCompile(`[^a-z0-9.-]+`)

// fileName is the key of a policy, which keeps the order of the policies.
func fileName(index int, d engine.Document) string {
	name := notInKeys.ReplaceAllString(strings.ToLower(d.Key.Kind+"-"+d.Key.Name), "-")
	return fmt.Sprintf("%04d-%s.yaml", index+1, name[:min(len(name), 200)])
}
