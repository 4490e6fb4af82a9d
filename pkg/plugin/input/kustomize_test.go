package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/memory"
)

// kustomize quotes all literals of a Secret when one of them is wrong.
func TestKustomizeErrorsHoldNoLiterals(t *testing.T) {
	dir := t.TempDir()
	text := "secretGenerator: [{name: s, literals: [password=hunter2hunter2, hunter3hunter3]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var failed error
	err := (&Reader{}).readKustomization(t.Context(), Files{Kustomize: dir}, func(_ engine.Document, err error) bool {
		failed = err
		return true
	})
	if err == nil {
		err = failed
	}
	if err == nil || !strings.Contains(err.Error(), "a literal of a generator is not KEY=VALUE") || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v", err)
	}
}

func TestKustomizationsAreBounded(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kustomization.yaml"), "resources: [a.yaml]\n")
	write(t, filepath.Join(dir, "a.yaml"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: ["+strings.Repeat("1,", 10_000)+"]}}\n")
	for limit, want := range map[int64]bool{1 << 20: false, 1 << 30: true} {
		r := &Reader{Budget: memory.Budget{Limit: limit}}
		err := r.readKustomization(t.Context(), Files{Kustomize: dir}, func(engine.Document, error) bool { return true })
		if (err == nil) != want || (err != nil && !strings.Contains(err.Error(), memory.ErrTooLarge.Error())) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
