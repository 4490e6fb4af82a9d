package plugin_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// TestConvertConformance converts the ClusterPolicies of the corpus that need no data from elsewhere, and
// compares what the new policies do with what Kyverno answered to the old ones.
func TestConvertConformance(t *testing.T) {
	var cases []conversionCase
	for _, c := range findCases(t, filepath.Join("..", "..", "..", "shared", "conformance")) {
		policy, err := os.ReadFile(c.file("policy.yaml"))
		if err != nil {
			continue
		}
		text := string(policy)
		if !slices.Contains(c.Dialects, "kyverno") || !strings.Contains(text, "mutate:") || !strings.Contains(text, "Policy\n") ||
			!strings.Contains(text, "kyverno.io/v1") || c.has("values.yaml") || c.has("want.error") {
			continue
		}
		one := conversionCase{id: c.ID, to: "mutatingpolicy", policy: c.file("policy.yaml"), objects: c.file("objects.yaml"), replay: &c}
		if c.has("world.yaml") {
			one.world = c.file("world.yaml")
		}
		cases = append(cases, one)
	}
	if len(cases) == 0 {
		t.Skip("NO POLICY OF THE CORPUS IS CONVERTED: there is none")
	}
	convertAll(t, cases)
}

// replayConverted previews the new policies on the objects of a case, and returns what is different from what
// Kyverno answered to the old ones.
func replayConverted(c replayCase, policy string) string {
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	args := []string{"preview", "-p", policy, "-f", c.file("objects.yaml"), "--operation", c.Operation, "--show-secrets", "-o", "manifests", "--annotate=false"}
	if c.has("world.yaml") {
		args = append(args, "--world", c.file("world.yaml"))
	}
	code := plugin.Run(context.Background(), plugin.NewCommand("kubectl mutate", streams), args, streams)
	if diff := c.compare(out.String()); diff != "" {
		return strings.TrimSpace(errOut.String()+"\n"+diff) + "\nexit code " + string(rune('0'+code%10))
	}
	return ""
}
