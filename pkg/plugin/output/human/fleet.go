package human

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

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
	if err := h.writeClusters(b, e.Clusters); err != nil {
		return err
	}
	if !h.Writes {
		b.WriteString("\n")
	}
	_, err := h.Out.Write(b.Bytes())
	return err
}

// problemShown bounds a problem in a row, in bytes. It is shown in full elsewhere.
const problemShown = 100

// writeClusters writes a row for each cluster.
func (h *base) writeClusters(out io.Writer, clusters []output.Cluster) error {
	changed := "would change"
	switch {
	case h.Compares:
		changed = "differ"
	case h.Writes && h.DryRun != "":
		changed = "would be written"
	case h.Writes:
		changed = "written"
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tOBJECTS\t"+strings.ToUpper(changed)+"\tFAILED\tPODS RESTART\tPROBLEM")
	for i := range clusters {
		c := &clusters[i]
		problem := "<none>"
		if c.Err != nil {
			problem = engine.Shorten(c.Err.Error(), problemShown)
			if c.Problems > 1 {
				problem += fmt.Sprintf(" (and %d more)", c.Problems-1)
			}
		}
		fmt.Fprintln(w, cells(c.Name, wording.Number(c.Objects), wording.Number(c.Changed), wording.Number(c.Failed), wording.Number(c.Pods), problem))
	}
	return w.Flush()
}
