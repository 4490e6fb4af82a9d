package plugin_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// convertListFile lists what is not converted: lines "ID TARGET  # reason".
var convertListFile = filepath.Join("testdata", "convert-open.txt")

// conversionCase is a set of policies to convert, with objects to compare old and new on.
type conversionCase struct {
	id, to, policy, objects, world string
	replay                         *replayCase // what Kyverno answered; nil where that is not known
}

// conversions collects what came of converting cases, and judges it by convertListFile.
type conversions struct {
	listed map[string]string

	mu     sync.Mutex
	counts map[string]int
}

func newConversions(t *testing.T) *conversions {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	return &conversions{listed: reasons(t, convertListFile), counts: map[string]int{}}
}

// judge converts a case, and fails where the list says otherwise.
func (all *conversions) judge(t *testing.T, c *conversionCase) {
	t.Helper()
	why := c.convert(t)
	id := c.id + " " + c.to
	_, known := all.listed[id]
	all.mu.Lock()
	defer all.mu.Unlock()
	set, _, _ := strings.Cut(c.id, "/")
	all.counts[fmt.Sprintf("%s to %s: converted %t", set, c.to, why == "")]++
	switch {
	case why != "" && !known:
		t.Errorf("is not converted, and %s does not list it:\n%s", convertListFile, why)
	case why == "" && known:
		t.Errorf("is converted by now: take it off %s", convertListFile)
	}
}

// end logs the counts.
func (all *conversions) end(t *testing.T) {
	t.Helper()
	var table []string
	for name, n := range all.counts {
		table = append(table, fmt.Sprintf("%-60s %6d", name, n))
	}
	slices.Sort(table)
	t.Log("\n" + strings.Join(table, "\n"))
}

// converts reports whether the case is a ClusterPolicy that needs no data from elsewhere. Those of other
// projects are converted at night.
func (c *replayCase) converts() bool {
	text := string(c.Files["policy.yaml"])
	return (c.Own || tier.All()) && slices.Contains(c.Dialects, "kyverno") && strings.Contains(text, "mutate:") && strings.Contains(text, "Policy\n") &&
		strings.Contains(text, "kyverno.io/v1") && !c.Has("values.yaml") && !c.Has("want.error")
}

func (c *replayCase) conversion() *conversionCase {
	one := &conversionCase{id: c.ID, to: "mutatingpolicy", policy: c.file("policy.yaml"), objects: c.file("objects.yaml"), replay: c}
	if c.Has("world.yaml") {
		one.world = c.file("world.yaml")
	}
	return one
}

// replayConverted previews the new policies on the objects of a case, and returns what is different from what
// Kyverno answered to the old ones.
func replayConverted(t *testing.T, c *replayCase, policy string) string {
	t.Helper()
	args := []string{"preview", "-p", policy, "-f", c.file("objects.yaml"), "--operation", c.Operation, "--show-secrets", "-o", "manifests", "--annotate=false"}
	if c.Has("world.yaml") {
		args = append(args, "--world", c.file("world.yaml"))
	}
	code, out, errOut := runCommand(t, args...)
	if diff := c.compare(out); diff != "" {
		return fmt.Sprintf("%s\n%s\nexit code %d", errOut, diff, code)
	}
	return ""
}

// convert returns why the case is not converted as a whole; nothing if it is. What is printed has to do the
// same as the original, whether that is all of it or not.
func (c *conversionCase) convert(t *testing.T) string {
	t.Helper()
	args := []string{"convert", "-p", c.policy, "-f", c.objects, "--to", c.to, "--variants=60", "--request-user", "dev-jane", "--replication-controllers"}
	if strings.HasPrefix(c.id, "migrations/") { // the last flag counts
		args = append(args, "--variants=200")
	}
	if c.world != "" {
		args = append(args, "--world", c.world)
	}
	code, out, errOut := runCommand(t, args...)
	idle := code == process.ExitIncomplete && !strings.Contains(errOut, "not converted: ") && !strings.Contains(errOut, ": not exercised: ")
	if code != process.ExitOK && !idle { // a few variants do not exercise each rule
		return errOut
	}
	printed := write(t, t.TempDir(), "new.yaml", out)
	if c.replay != nil {
		differs := reasons(t, openListFile)[c.replay.ID] != "" // so does the old policy
		if diff := replayConverted(t, c.replay, printed); diff != "" && !differs {
			t.Errorf("is not what Kyverno answered:\n%s\n%s", diff, out)
		}
		return ""
	}
	pair := policyPair{c.id, c.policy, printed, c.objects, "100"}
	switch got := pair.compare(t); got.Summary.Conclusion {
	case "same", "same-as-far-as-tested", "not-exercised":
	default:
		if asksRegistry(t, c.policy) && got.Summary.Variants.Compared > 0 && got.where() == "" {
			break // the variants are the same, whose images are in a registry that is made up
		}
		t.Errorf("claims to be the same, and is %s:\n%s", got.Summary.Conclusion, out)
	}
	return ""
}

// asksRegistry reports whether a policy looks images up, which no test does for the objects of a case.
func asksRegistry(t *testing.T, policy string) bool {
	t.Helper()
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(text, []byte("imageRegistry:"))
}
