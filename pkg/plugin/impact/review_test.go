package impact

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite what the golden files want")

// TestLive judges changes to live objects: each is an object, a JSON patch and what
// there is to tell. A section named "world" holds what exists besides the objects.
func TestLive(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "live-*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, path := range files {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		reviewer := &Reviewer{Reader: worldOf(t, archive), FieldManager: "kubectl-mutate"}
		for i := range archive.Files {
			file := &archive.Files[i]
			if file.Name == "world" {
				continue
			}
			t.Run(filepath.Base(path)+"/"+file.Name, func(t *testing.T) {
				parts := bytes.Split(file.Data, []byte("---\n"))
				if len(parts) < 2 {
					t.Fatal("an object and a patch are needed")
				}
				got := told(t, reviewer, parts[0], parts[1])
				if *update {
					file.Data = bytes.Join([][]byte{parts[0], parts[1], []byte(got)}, []byte("---\n"))
					return
				}
				if d := cmp.Diff(string(bytes.Join(parts[2:], nil)), got); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func told(t *testing.T, reviewer *Reviewer, object, patch []byte) string {
	t.Helper()
	before := conformance.ReadObject(t, object)
	after, err := patched(t, before, patch)
	if err != nil {
		t.Fatal(err)
	}
	c := changeBetween(t, before, after)
	if len(c.Fields) == 0 {
		t.Fatal("the patch changes nothing")
	}
	original := before.DeepCopy()
	if err := reviewer.live(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(original, before); d != "" {
		t.Errorf("the live object was modified:\n%s", d)
	}
	var b strings.Builder
	for _, i := range c.Impacts {
		fmt.Fprintf(&b, "%s: %s", i.Code, i.Text)
		if i.Pods > 0 {
			fmt.Fprintf(&b, " [%d]", i.Pods)
		}
		if i.Advice != "" {
			b.WriteString("\n  advice: " + i.Advice)
		}
		if i.Brief != "" {
			b.WriteString("\n  of several: " + i.Brief)
		}
		for _, f := range i.Fields {
			b.WriteString("\n  " + engine.PathString(f))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func worldOf(t *testing.T, archive *txtar.Archive) engine.Reader {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, file := range archive.Files {
		if file.Name != "world" {
			continue
		}
		for _, text := range bytes.Split(file.Data, []byte("---\n")) {
			objects = append(objects, conformance.ReadObject(t, text))
		}
	}
	world, err := snapshot.Load(engine.Documents(objects...), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return world
}
