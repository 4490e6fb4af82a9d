package metrics

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// WriteTo writes all metrics. Equal runs are written as equal bytes.
func (r *Run) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	b.WriteString("# TYPE kubectl_mutate_run info\n# HELP kubectl_mutate_run The run that these metrics are of.\n")
	b.WriteString("kubectl_mutate_run_info" + labelsText([]string{"verb", "version"}, []string{r.verb, r.version}) + " 1\n")
	for _, f := range r.families {
		f.writeTo(&b)
	}
	b.WriteString("# EOF\n")
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// WriteFile writes all metrics to an ordinary file, which takes the place of one
// that is there in one step: nobody reads half of it.
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
