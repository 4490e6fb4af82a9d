package html

import (
	"html/template"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// frame is what the pages have in common. Its texts are masked and escaped.
type frame struct {
	Policy template.HTML // of content
	Style  template.CSS

	What, Done     string // "Mutation preview", "evaluated"
	Title          string
	Context        output.Context
	Clusters       []clusterRow
	ClusterChanged string
	Problems       []string
	Unlisted       int // problems that are too many
}

// clusterRow is what came of a cluster of several.
type clusterRow struct {
	output.Cluster
	Problem string
}

func (f *frame) fleet(e output.Fleet) {
	for _, c := range e.Clusters {
		row := clusterRow{Cluster: c}
		row.Name = line(c.Name, nameLength)
		if c.Err != nil {
			row.Problem = line(c.Err.Error(), textLength)
		}
		f.Clusters = append(f.Clusters, row)
	}
}

// problem adds what went wrong beside the objects; it stands above everything.
func (f *frame) problem(err error) {
	if len(f.Problems) == maxProblems {
		f.Unlisted++
		return
	}
	f.Problems = append(f.Problems, cut(report.ProblemOf(err).Text, textLength))
}

// parsed is the template of a page, with the parts that all have in common.
func parsed(source string) (*template.Template, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"n": wording.Number, "parts": pathParts}).Parse(frameSource)
	if err != nil {
		return nil, err
	}
	return t.Parse(source)
}
