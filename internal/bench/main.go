//go:build linux

// Command bench measures the program on files or on an API server, and prints a table. Each row is a ratio to
// the bare work, done in turn: a file of YAML documents decoded as kubectl does it, or a listing in pages,
// and kept by nobody. User CPU is what to trust; wall time depends on what else the machine does.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	b := bench{kubeconfig: os.DevNull}
	flag.StringVar(&b.program, "program", ".bin/kubectl-mutate", "the plugin")
	flag.StringVar(&b.data, "policies", "internal/bench/testdata", "the policies")
	flag.StringVar(&b.workload.dir, "dir", ".bin/bench", "where the objects are written")
	flag.IntVar(&b.objects, "objects", 10000, "how many objects")
	flag.IntVar(&b.runs, "runs", 3, "how often each row runs, in turn with what it is compared with")
	live := flag.Bool("live", false, "measure on the API server of KUBECONFIG, which gets as many Pods, instead of on files")
	decode := flag.String("decode", "", "only decode this file, as kubectl does")
	list := flag.Bool("list", false, "only list and decode all Pods of the server")
	flag.Parse()
	if err := errors.Join(atLeastOne("objects", b.objects), atLeastOne("runs", b.runs)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	run := func() error { return b.run(b.files) }
	switch {
	case *decode != "":
		run = func() error { return bareDecode(*decode) }
	case *list:
		run = bareList
	case *live:
		b.kubeconfig = os.Getenv("KUBECONFIG")
		run = func() error { return b.run(b.live) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func atLeastOne(name string, n int) error {
	if n < 1 {
		return fmt.Errorf("-%s is %d, and has to be at least 1", name, n)
	}
	return nil
}

// bareDecode decodes a file as kubectl does: into unstructured objects, one after the other.
func bareDecode(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	documents := utilyaml.NewYAMLReader(bufio.NewReader(f))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		json, err := utilyaml.ToJSON(text)
		if err != nil {
			return err
		}
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(json); err != nil {
			return err
		}
	}
}

type bench struct {
	program, data string
	kubeconfig    string // of the server, or that of none
	workload      workload
	objects, runs int
}

// row is one line of the table: a command, and the one that it is compared with.
type row struct {
	work          string
	command, base []string
}

// run prints the table of some rows.
func (b *bench) run(of func() ([]row, error)) error {
	if err := os.MkdirAll(b.workload.dir, 0o750); err != nil {
		return err
	}
	rows, err := of()
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "work\tuser CPU: min\tmedian\tmax\twall: median\tuser s\tpeak MB\tpeak MB of the bare work")
	for _, r := range rows {
		if err := b.measure(out, r); err != nil {
			return fmt.Errorf("%s: %w", r.work, err)
		}
	}
	return out.Flush()
}

// files are the rows on files.
func (b *bench) files() ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	preview := func(policies, objects, format string) []string {
		return []string{b.program, "preview", "-p", policies, "-f", objects, "-o", format, "--exit-code=false"}
	}
	objects, err := b.workload.objects(b.objects)
	if err != nil {
		return nil, err
	}
	decode := []string{self, "-decode", objects}
	kyverno := filepath.Join(b.data, "kyverno")
	var rows []row
	for _, format := range []string{"summary", "diff", "json", "manifests"} {
		rows = append(rows, row{fmt.Sprintf("%d x 10 Kyverno policies, %s", b.objects, format), preview(kyverno, objects, format), decode})
	}
	for _, one := range []struct{ name, path string }{
		{"10 Gatekeeper mutators", "gatekeeper"},
		{"1 MutatingPolicy", "mutatingpolicy.yaml"},
		{"1 MutatingAdmissionPolicy, ApplyConfiguration", "applyconfiguration.yaml"},
		{"1 MutatingAdmissionPolicy, JSONPatch", "jsonpatch.yaml"},
	} {
		rows = append(rows, row{fmt.Sprintf("%d x %s, summary", b.objects, one.name), preview(filepath.Join(b.data, one.path), objects, "summary"), decode})
	}
	for _, n := range []int{b.objects / 10, 5 * b.objects} {
		path, err := b.workload.objects(n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{fmt.Sprintf("%d x 10 Kyverno policies, summary", n), preview(kyverno, path, "summary"), []string{self, "-decode", path}})
	}
	one, err := b.workload.policies(0)
	if err != nil {
		return nil, err
	}
	many, err := b.workload.policies(999)
	if err != nil {
		return nil, err
	}
	small, err := b.workload.objects(1)
	if err != nil {
		return nil, err
	}
	return append(rows,
		row{fmt.Sprintf("%d x 1,000 policies of which one matches, to that one", b.objects), preview(many, objects, "summary"), preview(one, objects, "summary")},
		row{"1 x 1 policy", preview(one, small, "summary"), []string{self, "-decode", small}}), nil
}

// usage is what a process used.
type usage struct {
	user, wall time.Duration
	peak       int64 // bytes
}

func (b *bench) measure(out io.Writer, r row) error {
	var user, wall []float64
	var last, base usage
	var seconds []float64
	for range b.runs {
		var err error
		if base, err = b.measured(r.base); err != nil {
			return err
		}
		if last, err = b.measured(r.command); err != nil {
			return err
		}
		user, wall = append(user, ratio(last.user, base.user)), append(wall, ratio(last.wall, base.wall))
		seconds = append(seconds, last.user.Seconds())
	}
	slices.Sort(user)
	slices.Sort(wall)
	slices.Sort(seconds)
	middle := len(user) / 2
	_, err := fmt.Fprintf(out, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%d\n", r.work, user[0], user[middle], user[len(user)-1],
		wall[middle], seconds[middle], last.peak>>20, base.peak>>20)
	return err
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, time.Millisecond)) }

func (b *bench) measured(command []string) (usage, error) {
	c := exec.Command(command[0], command[1:]...) // the flags of a developer
	c.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig)
	start := time.Now()
	var text bytes.Buffer // of standard output nothing is kept
	c.Stderr = &text
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3: a rule could not be evaluated on each object
		return usage{}, fmt.Errorf("%v: %w\n%s", command, err, text.Bytes()[:min(text.Len(), 2000)])
	}
	u := usage{user: c.ProcessState.UserTime(), wall: time.Since(start)}
	if r, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = r.Maxrss << 10
	}
	return u, nil
}
