package plugin_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// TestConvertWrong converts policies that are easily converted to what does something else on objects that no
// variant resembles. Neither language has to have each of them, but what is printed does the same on these
// objects. The comment of a case says in which languages it is refused.
func TestConvertWrong(t *testing.T) {
	tier.NotShort(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	paths, err := filepath.Glob(filepath.Join("testdata", "convert-wrong", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		var objects []string
		for _, f := range archive.Files {
			written := write(t, dir, f.Name, string(f.Data))
			if f.Name != "old.yaml" {
				objects = append(objects, "-f", written)
			}
		}
		old := filepath.Join(dir, "old.yaml")
		for _, to := range []string{"mutatingpolicy", "mutatingadmissionpolicy"} {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar")+"/"+to, func(t *testing.T) {
				// The objects are kept from the conversion, which would refuse what it finds to differ on
				// them.
				args := []string{"convert", "-p", old, "--to", to, "--variants=60"}
				if crd := filepath.Join(dir, "crd.yaml"); exists(crd) {
					args = append(args, "-f", crd)
				}
				code, out, errOut := runCommand(t, args...)
				refused := strings.Contains(errOut, "not converted: ")
				if want := strings.Contains("\n"+string(archive.Comment), "\nrefused: "+to+"\n"); refused != want || refused && code != process.ExitIncomplete {
					t.Fatalf("refused: %t, want %t, exit code %d\n%s%s", refused, want, code, errOut, out)
				}
				if refused {
					return
				}
				printed := write(t, dir, to+".yaml", out)
				_, out, errOut = runCommand(t, append([]string{"compare", "-p", old, "--with", printed, "-o", "json"}, objects...)...)
				var got compared
				if err := json.Unmarshal([]byte(out), &got); err != nil {
					t.Fatalf("%v\n%s", err, errOut)
				}
				if c := got.Summary.Conclusion; c != "same" && c != "same-as-far-as-tested" && c != "not-exercised" {
					t.Errorf("the new policy is not the same, but %s:\n%s", c, out)
				}
			})
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runCommand runs the program, and returns its exit code and what it prints.
func runCommand(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout bytes.Buffer
	var stderr syncBuffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}
	code = plugin.Run(t.Context(), plugin.NewCommand("kubectl mutate", streams, nil), args, streams)
	return code, stdout.String(), stderr.String()
}
