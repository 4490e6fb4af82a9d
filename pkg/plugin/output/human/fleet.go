package human

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// fleet prints what came of each cluster.
func (h *base) fleet(e output.Fleet) error {
	b := h.page()
	if h.Writes { // it ends what is shown
		b.WriteString("\n")
	}
	h.writeClusters(b, e.Clusters)
	if !h.Writes {
		b.WriteString("\n")
	}
	_, err := h.Out.Write(b.Bytes())
	return err
}

// problemShown bounds a problem in a row, in bytes. It is shown in full elsewhere.
const problemShown = 100

// writeClusters writes a row for each cluster.
func (h *base) writeClusters(b *page, clusters []output.Cluster) {
	changed := "would change"
	switch {
	case h.Compares:
		changed = "differ"
	case h.Writes && h.DryRun != "":
		changed = "would be written"
	case h.Writes:
		changed = "written"
	}
	rows := [][]string{{"CLUSTER", "OBJECTS", strings.ToUpper(changed), "FAILED", "PODS RESTART", "PROBLEM"}}
	for i := range clusters {
		c := &clusters[i]
		problem := "<none>"
		if c.Err != nil {
			problem = engine.Shorten(c.Err.Error(), problemShown)
			if c.Problems > 1 {
				problem += fmt.Sprintf(" (and %d more)", c.Problems-1)
			}
		}
		rows = append(rows, []string{c.Name, wording.Number(c.Objects), wording.Number(c.Changed), wording.Number(c.Failed), wording.Number(c.Pods), problem})
	}
	b.table(rows)
}
