package metrics

import (
	"bytes"
	"fmt"
	"io"

	"github.com/prometheus/common/expfmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// WriteTo writes all metrics that have samples. Equal runs are written as equal bytes.
func (r *Run) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting != nil {
		r.families[waitingEvents].counts[""] = r.waiting()
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

// WriteFile replaces a file by all metrics in one step, so that no reader sees half of
// it.
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
