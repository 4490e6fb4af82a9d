package input

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/heap"
)

// many writes files of one policy each, with as many fields.
func many(t *testing.T, files, fields int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := range files {
		text := fmt.Sprintf("apiVersion: example.io/v1\nkind: Rule\nmetadata: {name: rule-%d}\nspec:\n", i)
		write(t, filepath.Join(dir, fmt.Sprintf("%04d.yaml", i)), text+strings.Repeat("- field: value\n", fields))
	}
	return dir
}

// TestFilesShareTheirBuffer: one for each would be most of what many small files take.
func TestFilesShareTheirBuffer(t *testing.T) {
	const files = 200
	dir := many(t, files, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if read, err := new(Reader).ReadAll(context.Background(), Files{Paths: []string{dir}}); err != nil || len(read) != files {
		t.Fatalf("read %d documents, error %v", len(read), err)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / files; each > 48<<10 {
		t.Errorf("a small file takes %d bytes", each)
	}
}

// TestLinesDoNotKeepNodes: the nodes of a document take many times the memory of its text.
func TestLinesDoNotKeepNodes(t *testing.T) {
	const files, fields = 100, 200
	read, err := new(Reader).ReadAll(context.Background(), Files{Paths: []string{many(t, files, fields)}, Lines: true})
	if err != nil || len(read) != files {
		t.Fatalf("read %d documents, error %v", len(read), err)
	}
	before := heap.InUse()
	for _, d := range read {
		if line := d.Line("spec[7].field"); line != 12 {
			t.Fatalf("%s: the field is on line %d, want 12", d.Origin, line)
		}
	}
	if each := (heap.InUse() - before) / files; each > 8<<10 {
		t.Errorf("a document keeps %d bytes after it was asked for a line", each)
	}
	runtime.KeepAlive(read)
}
