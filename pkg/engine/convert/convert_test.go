package convert_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite the want sections in testdata")

// TestConvert converts the policy of each case, and compares what is refused, the notes and the first form,
// which is the one that people get unless it does not hold. The last line says how many other forms there
// are.
func TestConvert(t *testing.T) {
	world, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil || len(archive.Files) != 2 {
				t.Fatalf("%s needs policy.yaml and want: %v", path, err)
			}
			policy := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(archive.Files[0].Data, &policy.Object); err != nil {
				t.Fatal(err)
			}
			c := convert.Convert(t.Context(), engine.NewDocument(policy, "policy.yaml:1"), convert.Options{
				To: convert.MutatingPolicy, Mapper: world.Mapper(), Reader: world,
			})
			got := written(c)
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func written(c *convert.Conversion) string {
	var b strings.Builder
	for _, r := range c.Refusals {
		fmt.Fprintf(&b, "refused %s: %v\n", r.Rule, r)
	}
	for _, note := range c.Notes() {
		fmt.Fprintf(&b, "note %s\n", note)
	}
	if len(c.Rules()) == 0 {
		return b.String()
	}
	forms := c.Forms()
	if len(forms) > 0 {
		b.WriteString(forms[0].String())
	}
	fmt.Fprintf(&b, "# forms: %d\n", len(forms))
	return b.String()
}
