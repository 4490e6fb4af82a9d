package clusterreport

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// Count is how often the rules of one policy came to each result.
type Count struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule,omitempty"`
	Fail   int    `json:"fail"`
	Error  int    `json:"error"`
	Skip   int    `json:"skip"`
	Pass   int    `json:"pass"`
}

// Summary are the results of all reports of a set, by policy and rule, and how many objects have one.
type Summary struct {
	Objects int     `json:"objects"`
	Rules   []Count `json:"rules"`
}

// Print prints the results as JSON or YAML, whose schema is docs/summary.schema.json.
func (s Summary) Print(out io.Writer, asYAML bool) error {
	text, err := structured.MarshalText(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Summary
	}{"mutate.kubectl.dev/v1alpha1", "ReportSummary", s}, asYAML)
	if err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	_, err = io.WriteString(out, text)
	return err
}

// Read reads the reports of a set back; of all sets if the name is empty.
func Read(ctx context.Context, server Server, o Options) (Summary, error) {
	var out Summary
	counts := map[[2]string]*Count{}
	s := Store{Options: o, server: server}
	for u, err := range s.reports(ctx) {
		if err != nil {
			return out, err
		}
		if _, about := u.Object["scope"]; about {
			out.Objects++
		}
		results, _, _ := unstructured.NestedSlice(u.Object, "results")
		for _, r := range results {
			result, _ := r.(map[string]any)
			count(counts, result)
		}
	}
	for _, c := range counts {
		out.Rules = append(out.Rules, *c)
	}
	slices.SortFunc(out.Rules, func(a, b Count) int {
		return strings.Compare(a.Policy+"\x00"+a.Rule, b.Policy+"\x00"+b.Rule)
	})
	return out, nil
}

// count counts a result.
func count(counts map[[2]string]*Count, result map[string]any) {
	text := func(name string) string { s, _ := result[name].(string); return s }
	at := [2]string{text("policy"), text("rule")}
	c := counts[at]
	if c == nil {
		c = &Count{Policy: at[0], Rule: at[1]}
		counts[at] = c
	}
	switch text("result") {
	case "fail":
		c.Fail++
	case "error":
		c.Error++
	case "skip":
		c.Skip++
	case "pass":
		c.Pass++
	}
}
