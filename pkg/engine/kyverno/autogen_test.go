package kyverno

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// Each case is a policy's metadata.annotations and rules, and the rules that are
// derived from them.
func TestAutogenRules(t *testing.T) {
	files, err := filepath.Glob("testdata/autogen/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { checkRules(t, file) })
	}
}

func checkRules(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Annotations map[string]string `json:"annotations"`
		Rules       []map[string]any  `json:"rules"`
	}
	if err := yaml.UnmarshalStrict(archive.Files[0].Data, &in); err != nil {
		t.Fatal(err)
	}
	before := cmp.Diff(in.Rules, nil)
	derived, _ := autogenRules(in.Rules, in.Annotations)
	if cmp.Diff(in.Rules, nil) != before {
		t.Error("the rules that were handed in were modified")
	}
	got, err := yaml.Marshal(derived)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		archive.Files[1].Data = got
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(archive.Files[1].Data), string(got)); diff != "" {
		t.Errorf("derived rules (-want +got):\n%s", diff)
	}
}
