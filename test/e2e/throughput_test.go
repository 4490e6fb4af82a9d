package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	throughputObjects = 500
	throughputWorkers = 8
)

// BenchmarkThroughput measures how many objects apply-existing writes in a second,
// from its first write to its last result as its journal has them, beside the same
// number of server-side apply requests sent with no such care:
// without a journal, from as many workers, each on an object of its own. Each
// iteration does both, in turns of who begins, so that what else keeps the machine
// busy meets both; the ratio is the median of those of the iterations. Run it with
//
//	go test -run '^$' -bench Throughput -benchtime 7x .
func BenchmarkThroughput(b *testing.B) {
	f := newThroughput(b)
	rates := map[string][]float64{}
	for i := 0; b.Loop(); i++ {
		measure := []func(*testing.B) (string, float64){f.plugin, f.bare}
		if i%2 == 1 {
			slices.Reverse(measure)
		}
		for _, m := range measure {
			who, rate := m(b)
			rates[who] = append(rates[who], rate)
			b.Logf("%s: %.0f writes/s", who, rate)
		}
	}
	ratios := make([]float64, len(rates["plugin"]))
	for i, rate := range rates["plugin"] {
		ratios[i] = rate / rates["bare"][i]
	}
	b.ReportMetric(median(rates["plugin"]), "writes/s")
	b.ReportMetric(median(rates["bare"]), "bare-writes/s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(0, "ns/op") // which says nothing: it has the objects being made
}

func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// throughput is what both sides share.
type throughput struct {
	admin dynamic.Interface
	dir   string
}

func newThroughput(b *testing.B) *throughput {
	b.Helper()
	config, err := clientcmd.NewDefaultClientConfig(*server.config.DeepCopy(), nil).ClientConfig()
	if err != nil {
		b.Fatal(err)
	}
	config.QPS = -1
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	f := &throughput{admin: admin, dir: b.TempDir()}
	if err := buildPlugin(f.dir); err != nil {
		b.Fatal(err)
	}
	return f
}

// objects makes ConfigMaps in a namespace of their own.
func (f *throughput) objects(b *testing.B) string {
	b.Helper()
	namespace, err := createNamespace(b.Context(), f.admin, map[string]any{"generateName": "e2e-"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := deleteNamespace(context.Background(), f.admin, namespace); err != nil {
			b.Error(err)
		}
	})
	f.each(b, func(name string) error {
		_, err := core(f.admin, "configmaps").Namespace(namespace).Create(b.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"mode": "lax"},
		}}, metav1.CreateOptions{FieldManager: creator})
		return err
	})
	return namespace
}

// each does something for every object, by several workers.
func (f *throughput) each(b *testing.B, do func(name string) error) {
	b.Helper()
	names := make(chan string)
	var workers sync.WaitGroup
	for range throughputWorkers {
		workers.Go(func() {
			for name := range names {
				if err := do(name); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range throughputObjects {
		names <- fmt.Sprintf("object-%d", i)
	}
	close(names)
	workers.Wait()
}

func (f *throughput) bare(b *testing.B) (string, float64) {
	namespace := f.objects(b)
	force := true
	started := time.Now()
	f.each(b, func(name string) error {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q,"labels":{"team":"proof"}},"data":{"mode":"strict"}}`, name, namespace)
		_, err := core(f.admin, "configmaps").Namespace(namespace).Patch(b.Context(), name, types.ApplyPatchType, []byte(body),
			metav1.PatchOptions{FieldManager: "bare", Force: &force})
		return err
	})
	return "bare", rate(time.Since(started))
}

func rate(d time.Duration) float64 { return throughputObjects / d.Seconds() }

func (f *throughput) plugin(b *testing.B) (string, float64) {
	namespace := f.objects(b)
	kubeconfig := filepath.Join(f.dir, namespace)
	if err := clientcmd.WriteToFile(*server.as("", namespace), kubeconfig); err != nil {
		b.Fatal(err)
	}
	record := kubeconfig + ".jsonl"
	cmd := exec.CommandContext(b.Context(), filepath.Join(f.dir, "kubectl-mutate"), "apply-existing", "configmaps",
		"-p", filepath.Join("testdata", "proof", "throughput.yaml"), "--yes", "--max-changes", "0",
		"--concurrency", fmt.Sprint(throughputWorkers), "--kube-api-qps", "10000", "--kube-api-burst", "10000", "--journal", record)
	cmd.Env = append(os.Environ(), "HOME="+f.dir, "KUBECONFIG="+kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Time // of the first write, to the last result
	done := 0
	for line := range bytes.Lines(text) {
		var of struct{ Attempt, Result *struct{ Time time.Time } }
		if err := json.Unmarshal(line, &of); err != nil {
			b.Fatal(err)
		}
		switch {
		case of.Attempt != nil:
			times = append(times, of.Attempt.Time)
		case of.Result != nil:
			times = append(times, of.Result.Time)
			done++
		}
	}
	if done != throughputObjects {
		b.Fatalf("%d results", done)
	}
	return "plugin", rate(slices.MaxFunc(times, time.Time.Compare).Sub(slices.MinFunc(times, time.Time.Compare)))
}
