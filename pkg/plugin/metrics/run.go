// Package metrics counts what a run did, and writes the counts as OpenMetrics with the Prometheus libraries.
//
// All metrics of a run that ends are gauges: they describe the last run, and do not add up over runs. Those
// of a watch are counters: an object that is evaluated again counts again.
//
//   - kubectl_mutate_objects: evaluated objects by result;
//   - kubectl_mutate_incomplete_objects: evaluated objects on which a rule failed, was denied or is not
//     supported;
//   - kubectl_mutate_rule_objects: objects by the outcome of each rule that matched them;
//   - kubectl_mutate_writes: objects that a run tried to write, by outcome;
//   - kubectl_mutate_rule_writes: the same, by each rule that changed the object;
//   - kubectl_mutate_watch_events, kubectl_mutate_watch_errors, kubectl_mutate_watch_waiting_events:
//     evaluated changes of the cluster, errors of the watch, and changes that wait;
//   - kubectl_mutate_watch_pending_objects, kubectl_mutate_watch_refused_objects: objects that are to be
//     retried, and that were refused.
package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Run holds the counts of one run. It is safe for concurrent use. A nil Run counts nothing.
type Run struct {
	mu       *sync.Mutex // of the families
	families []*family
	left     func() (waiting, pending, refused int) // of a watch; nil of a run that ends
	cluster  string                                 // of objects that name none
}

// The indices of the families, in the order in which they are written.
const (
	info = iota
	objects
	incompleteObjects
	ruleObjects
	writes
	ruleWrites
	// Of watches only.
	events
	watchErrors
	waitingEvents
	pendingObjects
	refusedObjects
)

// New returns a Run without counts. The verb is the command's name.
func New(verb, version string) *Run {
	kind := []string{"cluster", "group", "kind", "namespace"}
	rule := append([]string{"dialect", "policy", "rule"}, kind...)
	r := &Run{mu: &sync.Mutex{}, families: []*family{
		newFamily("kubectl_mutate_run_info", "The run that these metrics describe.", []string{"verb", "version"}),
		newFamily("kubectl_mutate_objects", "Evaluated objects, by what would become of them.", append(kind, "result")),
		newFamily("kubectl_mutate_incomplete_objects", "Evaluated objects on which a rule failed, was denied or is not supported.", kind),
		newFamily("kubectl_mutate_rule_objects", "Objects by the outcome of each rule on them.", append(rule, "outcome")),
		newFamily("kubectl_mutate_writes", "Objects that were to be written, by outcome.", append(kind, "outcome")),
		newFamily("kubectl_mutate_rule_writes", "Objects that were to be written, by rule that changes them.", append(rule, "outcome")),
	}}
	r.add(info, []string{verb, version})
	return r
}

// NewWatch returns a Run for a watch. Its metrics are counters without a namespace: namespaces come and go,
// and the counts must not grow with them. Left returns how many events wait to be evaluated, and how many
// objects are to be retried or were refused.
func NewWatch(verb, version string, left func() (waiting, pending, refused int)) *Run {
	r := New(verb, version)
	r.left = left
	r.families = append(r.families,
		newFamily("kubectl_mutate_watch_events", "Changes of the cluster that were evaluated.", []string{"operation", "group", "kind"}),
		newFamily("kubectl_mutate_watch_errors", "Errors of the watch, besides those of rules and writes.", nil),
		newFamily("kubectl_mutate_watch_waiting_events", "Changes of the cluster that wait to be evaluated.", nil),
		newFamily("kubectl_mutate_watch_pending_objects", "Objects whose changes were not made, and are tried again.", nil),
		newFamily("kubectl_mutate_watch_refused_objects", "Objects whose changes were refused.", nil))
	for i, f := range r.families {
		f.counter = i != info && i < waitingEvents
	}
	r.families[watchErrors].counts[""] = 0
	return r
}

// Event counts an evaluated event of a watch.
func (r *Run) Event(operation engine.Operation, kind schema.GroupKind) {
	if r != nil {
		r.add(events, []string{string(operation), kind.Group, kind.Kind})
	}
}

// Error counts an error of a watch.
func (r *Run) Error() {
	if r != nil {
		r.add(watchErrors, []string{})
	}
}

// On returns the Run for the objects of one cluster of several.
func (r *Run) On(cluster string) *Run {
	if r == nil {
		return nil
	}
	out := *r
	out.cluster = cluster
	return &out
}

// Evaluated counts an object and the outcomes of rules on it. Several triggers of one rule count once for
// each outcome.
func (r *Run) Evaluated(c *engine.Change) {
	if r == nil {
		return
	}
	if c.Before != nil {
		result := "unchanged"
		if c.Changed() {
			result = "changed"
		}
		r.add(objects, append(r.kindOf(c.Subject), result))
		if c.Incomplete() {
			r.add(incompleteObjects, r.kindOf(c.Subject))
		}
	}
	seen := map[[2]any]bool{}
	for _, s := range c.Steps {
		id := [2]any{s.Rule, s.Outcome}
		if s.Outcome == engine.NotMatched || seen[id] {
			continue
		}
		seen[id] = true
		r.add(ruleObjects, append(r.ruleOf(s.Rule, c.Subject), string(s.Outcome)))
	}
}

// Written counts the outcome of an object to write, and of the rules that change it. A separate write to
// /status counts again.
func (r *Run) Written(result *write.Result, rules []engine.RuleRef) {
	if r == nil {
		return
	}
	r.add(writes, append(r.kindOf(result.Key), string(result.Outcome)))
	for _, rule := range engine.Distinct(slices.Clone(rules)) {
		r.add(ruleWrites, append(r.ruleOf(rule, result.Key), string(result.Outcome)))
	}
	if result.Status != nil {
		r.Written(result.Status, rules)
	}
}

func (r *Run) add(family int, labels []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.families[family].add(labels)
}

// kindOf returns the labels of an object: cluster, group, kind and namespace.
func (r *Run) kindOf(k engine.ObjectKey) []string {
	if r.left != nil {
		k.Namespace = ""
	}
	return []string{cmp.Or(k.Cluster, r.cluster), k.Group, k.Kind, k.Namespace}
}

func (r *Run) ruleOf(rule engine.RuleRef, k engine.ObjectKey) []string {
	return append([]string{rule.Dialect, rule.Policy, rule.Rule}, r.kindOf(k)...)
}

// family is a metric and its samples.
type family struct {
	name, help string
	labels     []string
	counter    bool           // it only grows, and is not a gauge
	counts     map[string]int // by the values, each ended by a NUL byte
}

func newFamily(name, help string, labels []string) *family {
	return &family{name: name, help: help, labels: slices.Clone(labels), counts: map[string]int{}}
}

// add counts a sample. Anybody can choose names in a cluster: characters that the format cannot escape are
// replaced by their code.
func (f *family) add(values []string) {
	var id strings.Builder
	for _, v := range values {
		id.WriteString(redact.Escape(strings.ToValidUTF8(v, "\uFFFD"), "\n"))
		id.WriteByte(0)
	}
	f.counts[id.String()]++
}

// metrics returns the family for the Prometheus libraries. Empty labels are left out, which is the same to a
// reader.
func (f *family) metrics() *dto.MetricFamily {
	name, kind := f.name, dto.MetricType_GAUGE
	if f.counter {
		name, kind = name+"_total", dto.MetricType_COUNTER
	}
	out := &dto.MetricFamily{Name: &name, Help: &f.help, Type: kind.Enum()}
	for _, id := range slices.Sorted(maps.Keys(f.counts)) {
		value := float64(f.counts[id])
		sample := &dto.Metric{}
		if f.counter {
			sample.Counter = &dto.Counter{Value: &value}
		} else {
			sample.Gauge = &dto.Gauge{Value: &value}
		}
		values := strings.Split(id, "\x00")
		for i := range f.labels {
			if values[i] != "" {
				sample.Label = append(sample.Label, &dto.LabelPair{Name: &f.labels[i], Value: &values[i]})
			}
		}
		out.Metric = append(out.Metric, sample)
	}
	return out
}

// WriteTo writes all metrics that have samples. Equal runs are written as equal bytes.
func (r *Run) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left != nil {
		r.families[waitingEvents].counts[""], r.families[pendingObjects].counts[""],
			r.families[refusedObjects].counts[""] = r.left()
	}
	var b bytes.Buffer
	for _, f := range r.families {
		if len(f.counts) == 0 {
			continue
		}
		if _, err := expfmt.MetricFamilyToOpenMetrics(&b, f.metrics()); err != nil {
			return 0, fmt.Errorf("metrics: %w", err)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(&b); err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	return b.WriteTo(w)
}

// WriteFile replaces a file in one step, so that no reader sees half of it.
func (r *Run) WriteFile(path string) error {
	var b bytes.Buffer
	if _, err := r.WriteTo(&b); err != nil {
		return err
	}
	if err := file.Replace(path, file.Shared, b.Bytes()); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
