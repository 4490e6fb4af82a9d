package plugin_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// TestFixSettles holds fix to its law over the cases of the corpus: after fix --write, a preview of the files finds
// nothing, unless fix has said why an object stays as it is.
func TestFixSettles(t *testing.T) {
	tier.NotShort(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	var mu sync.Mutex
	counts := map[string]int{}
	count := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		counts[what]++
	}
	t.Run("cases", func(t *testing.T) {
		for _, c := range findCases(t) {
			if c.Operation == "DELETE" { // which is not what becomes of a file
				continue
			}
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				c.dir = t.TempDir()
				if err := c.Write(c.dir); err != nil {
					t.Fatal(err)
				}
				args := []string{"-p", c.file("policy.yaml"), "-f", c.file("objects.yaml"), "--operation", c.Operation}
				if c.Has("world.yaml") { // whose objects change as well
					args = append(args, "-f", c.file("world.yaml"))
				}
				if c.Has("values.yaml") {
					args = append(args, "--values", c.file("values.yaml"))
				}
				before, err := os.ReadFile(c.file("objects.yaml"))
				if err != nil {
					t.Fatal(err)
				}
				_, _, errOut := runCommand(t, append([]string{"fix", "--write"}, args...)...)
				left := leftAsIs.FindAllStringSubmatch(errOut, -1)
				_, out, _ := runCommand(t, append([]string{"preview", "-o", "json", "--annotate=false"}, args...)...)
				var report struct {
					Summary struct{ Changed, Created, Incomplete int }
				}
				if out != "" {
					if err := json.Unmarshal([]byte(out), &report); err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
				}
				after, err := os.ReadFile(c.file("objects.yaml"))
				if err != nil {
					t.Fatal(err)
				}
				switch s := report.Summary; {
				case strings.Contains(errOut, "nothing was written"):
					count("errors in policies")
				case s.Changed+s.Created > len(left)+s.Incomplete:
					t.Errorf("%d objects would change again, %d as created\n%s\n%s", s.Changed, s.Created, errOut, after)
				case len(left) > 0:
					for _, l := range left {
						count("left: " + l[1])
					}
				case out == "":
					count("not evaluated")
				case bytes.Equal(before, after):
					count("nothing to change")
				default:
					count("changed")
				}
			})
		}
	})
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d %s", counts[what], what)
	}
}

// leftAsIs matches what fix says of an object that it leaves as it is.
var leftAsIs = regexp.MustCompile(`(?m)^error: \S+: (?:\S+ writes )?(.*); .* stays as it is$`)
