//go:build unix

package plugin_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// endlessPipe is a named pipe from which a text comes without an end.
type endlessPipe struct {
	path string
	read atomic.Int64 // bytes that were read, or are buffered
	done atomic.Bool
	over chan struct{}
}

// most is what is read of an endless text at most: as much as of a plan, and a bit.
const most = 600 << 20

func newEndlessPipe(t *testing.T, path, begins, goesOn string) *endlessPipe {
	t.Helper()
	_ = os.Remove(path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &endlessPipe{path: path, over: make(chan struct{})}
	go func() {
		defer close(p.over)
		for !p.done.Load() {
			if out, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				p.write(out, begins, goesOn)
			}
		}
	}()
	return p
}

// write writes until nobody reads, or somebody has read too much.
func (p *endlessPipe) write(out *os.File, begins, goesOn string) {
	defer out.Close() //nolint:errcheck // nobody reads any more
	_, err := io.WriteString(out, begins)
	text := []byte(strings.Repeat(goesOn, 1<<16/len(goesOn)))
	for err == nil && !p.done.Load() {
		var n int
		n, err = out.Write(text)
		if p.read.Add(int64(n)) > most {
			p.done.Store(true)
		}
	}
}

// end ends the text, which may not have been read.
func (p *endlessPipe) end() {
	p.done.Store(true)
	if in, err := os.OpenFile(p.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		defer in.Close() //nolint:errcheck // nothing was read
	}
	_ = os.Remove(p.path)
}

// notRead are flags whose files are written, or are read by client-go, as by kubectl.
func notRead() []string {
	return []string{
		"save", "report", "journal", "metrics", "kubeconfig", "certificate-authority", "client-certificate", "client-key", "cache-dir", "output",
	}
}

// endlessCommands are commands that read an endless file, with each of their flags that takes a text and each place for a name.
func endlessCommands(dir, pipe string) [][]string {
	policy, object := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "object.yaml")
	var all [][]string
	add := func(command string, rest ...string) { all = append(all, append(strings.Fields(command), rest...)) }
	bases := map[string][]string{
		"preview": {"-p", policy, "-f", object}, "compare": {"-p", policy, "--with", policy, "-f", object}, "convert": {"-p", policy, "-f", object},
		"explain": {"ConfigMap/c", "-p", policy, "-f", object}, "policies": {"-p", policy}, "rbac": {"-p", policy}, "job": {"-p", policy},
	}
	streams := genericiooptions.NewTestIOStreamsDiscard()
	var walk func(*cobra.Command, string)
	walk = func(c *cobra.Command, name string) {
		for _, sub := range c.Commands() {
			walk(sub, strings.TrimSpace(name+" "+sub.Name()))
		}
		if c.HasSubCommands() {
			return
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case slices.Contains(notRead(), f.Name) || !slices.Contains([]string{"string", "stringArray", "stringSlice"}, f.Value.Type()):
			case slices.Contains([]string{"filename", "policy", "with"}, f.Name) && bases[name] != nil: // in place of the usual one
				args := slices.Clone(bases[name])
				if i := slices.IndexFunc(args, func(a string) bool { return a == "--"+f.Name || a == "-"+f.Shorthand }); i >= 0 {
					args[i+1] = pipe
					add(name, args...)
				}
			default:
				add(name, append(slices.Clone(bases[name]), "--"+f.Name, pipe)...)
			}
		})
		add(name, pipe)
	}
	walk(plugin.NewCommand("kubectl mutate", streams), "")
	for _, format := range []string{"jsonpath-file=", "go-template-file=", "custom-columns-file="} {
		add("preview", append(slices.Clone(bases["preview"]), "-o", format+pipe)...)
	}
	add("preview", "-p", policy, "-k", dir)
	add("preview", "-p", policy, "-f", dir)
	add("preview", "-p", dir, "-f", object)
	return all
}

// TestEndlessInputs gives each command a file without an end, for each flag and name that may be one: what it reads is bounded.
func TestEndlessInputs(t *testing.T) {
	tier.NotShort(t)
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	write(t, dir, "policy.yaml", simplePolicy)
	write(t, dir, "object.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}}")
	write(t, dir, "kustomization.yaml", "resources: [pipe.yaml]")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	path := filepath.Join(dir, "pipe.yaml")
	readers := 0
	for _, content := range [][2]string{{"", "\x00"}, {`{"apiVersion": "`, " "}, {"", "---\n"}} {
		for _, args := range endlessCommands(dir, path) {
			if args[0] != "preview" && args[0] != "plan" && (content[0] != "" || content[1] != "\x00") {
				continue // others read as these do
			}
			p := newEndlessPipe(t, path, content[0], content[1])
			var out, errOut bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
			code := plugin.Run(t.Context(), plugin.NewCommand("kubectl mutate", streams), args, streams)
			p.end()
			<-p.over
			if p.read.Load() > most {
				t.Errorf("%q reads without an end: exit code %d\n%.500s", args, code, errOut.String())
			}
			if p.read.Load() > 1<<20 {
				readers++
			}
		}
	}
	if readers < 40 {
		t.Errorf("%d commands read the file", readers)
	}
}
