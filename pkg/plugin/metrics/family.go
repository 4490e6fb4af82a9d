package metrics

import (
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// family is one metric and its samples by the values of their labels.
type family struct {
	name, help string
	labels     []string
	counter    bool           // it only grows, and is no gauge
	counts     map[string]int // by the values, each ended by a NUL byte
}

func newFamily(name, help string, labels []string) *family {
	return &family{name: name, help: help, labels: slices.Clone(labels), counts: map[string]int{}}
}

// add counts one more with these values of the labels. Names in a cluster are
// anybody's: what the format has no escape for is replaced by its code.
func (f *family) add(values []string) {
	var id strings.Builder
	for _, v := range values {
		id.WriteString(redact.Escape(strings.ToValidUTF8(v, "\uFFFD"), "\n"))
		id.WriteByte(0)
	}
	f.counts[id.String()]++
}

// metrics is the family as the Prometheus libraries have it. Labels with empty values
// are left out, which is the same to a reader.
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
