package plugin_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

var updateConvert = flag.Bool("update-convert", false, "rewrite the list of what is not converted")

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
	open   map[string]string
	ids    []string
}

func newConversions(t *testing.T) *conversions {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	return &conversions{listed: readConvertList(t), counts: map[string]int{}, open: map[string]string{}}
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
	all.ids = append(all.ids, id)
	if why != "" {
		all.open[id] = why
	}
	switch {
	case *updateConvert:
	case why != "" && !known:
		t.Errorf("is not converted, and %s does not list it:\n%s", convertListFile, why)
	case why == "" && known:
		t.Errorf("is converted by now: take it off %s", convertListFile)
	}
}

// end rewrites the list where that was asked for, and logs the counts.
func (all *conversions) end(t *testing.T) {
	t.Helper()
	if *updateConvert {
		writeConvertList(t, all.listed, all.open, all.ids)
	}
	var table []string
	for name, n := range all.counts {
		table = append(table, fmt.Sprintf("%-60s %6d", name, n))
	}
	slices.Sort(table)
	t.Log("\n" + strings.Join(table, "\n"))
}

// converts reports whether the case is a ClusterPolicy that needs no data from elsewhere. Those of other projects
// are converted at night.
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
func replayConverted(c *replayCase, policy string) string {
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	args := []string{"preview", "-p", policy, "-f", c.file("objects.yaml"), "--operation", c.Operation, "--show-secrets", "-o", "manifests", "--annotate=false"}
	if c.Has("world.yaml") {
		args = append(args, "--world", c.file("world.yaml"))
	}
	code := plugin.Run(context.Background(), plugin.NewCommand("kubectl mutate", streams), args, streams)
	if diff := c.compare(out.String()); diff != "" {
		return fmt.Sprintf("%s\n%s\nexit code %d", errOut.String(), diff, code)
	}
	return ""
}

// convert returns why the case is not converted as a whole; nothing if it is. What is printed has to do the
// same as the original, whether that is all of it or not.
func (c *conversionCase) convert(t *testing.T) string {
	t.Helper()
	args := []string{"convert", "-p", c.policy, "-f", c.objects, "--to", c.to, "--variants=60", "--request-user", "dev-jane"}
	if c.world != "" {
		args = append(args, "--world", c.world)
	}
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	code := plugin.Run(context.Background(), plugin.NewCommand("kubectl mutate", streams), args, streams)
	idle := code == plugin.ExitIncomplete && !strings.Contains(errOut.String(), "not converted: ") && !strings.Contains(errOut.String(), ": not tested: ")
	if code != plugin.ExitOK && !idle { // a few variants do not exercise each rule
		return errOut.String()
	}
	printed := filepath.Join(t.TempDir(), "new.yaml")
	if err := os.WriteFile(printed, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.replay != nil {
		_, _, differs := readOpenList(t).find(*c.replay) // so does the old policy
		if diff := replayConverted(c.replay, printed); diff != "" && !differs {
			t.Errorf("is not what Kyverno answered:\n%s\n%s", diff, out.String())
		}
		return ""
	}
	pair := policyPair{c.id, c.policy, printed, c.objects, "100"}
	switch got := pair.compare(t); got.Summary.Conclusion {
	case "same", "same-as-far-as-tested":
	default:
		if asksRegistry(t, c.policy) && got.Summary.Variants.Compared > 0 && got.where() == "" {
			break // the variants are the same, whose images are in a registry that is made up
		}
		t.Errorf("claims to be the same, and is %s:\n%s", got.Summary.Conclusion, out.String())
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

func readConvertList(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(convertListFile)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(content)) {
		entry, reason := splitOpenLine(line)
		if entry != "" {
			out[strings.TrimSpace(entry)] = reason
		}
	}
	return out
}

// writeConvertList writes the list anew, with the reason of the first rule that is not converted.
func writeConvertList(t *testing.T, listed, open map[string]string, tried []string) {
	t.Helper()
	lines := []string{"# Policies that are not converted as a whole, with the first reason that convert gives."}
	for _, id := range tried {
		delete(listed, id)
	}
	ids := slices.Concat(slices.Collect(maps.Keys(listed)), slices.Collect(maps.Keys(open)))
	slices.Sort(ids)
	for _, id := range ids {
		if listed[id] != "" {
			lines = append(lines, id+"  # "+listed[id])
			continue
		}
		reason := "no reason is given"
		for line := range strings.Lines(open[id]) {
			if rest, ok := strings.CutPrefix(line, "not converted: "); ok {
				parts := strings.SplitN(rest, ": ", 3)
				reason = strings.TrimSpace(parts[len(parts)-1])
				break
			}
			if _, rest, ok := strings.Cut(line, ": not tested: "); ok {
				reason = "not tested: " + strings.TrimSpace(rest)
			}
		}
		if len(reason) > 200 {
			reason = reason[:200] + "..."
		}
		lines = append(lines, id+"  # "+reason)
	}
	if err := os.WriteFile(convertListFile, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
