package input

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/memory"
)

// sameAsLibrary reports whether decodeBlock decodes a text, and fails the test where the library
// makes anything else of it.
func sameAsLibrary(t *testing.T, text []byte) bool {
	t.Helper()
	p := part{text: text, line: 7}
	got, ok := decodeBlock(p, 0)
	if !ok {
		return false
	}
	want, err := decodeAny(p, 0, &bounds{Budget: &memory.Budget{}, aliases: aliasBudget})
	if err != nil || len(want) != 1 {
		t.Fatalf("the library makes %d values of it, and the error %v:\n%s", len(want), err, text)
	}
	if diff := cmp.Diff(want[0], got, cmp.AllowUnexported(value{}, implied{})); diff != "" {
		t.Fatalf("-library +block:\n%s\nof:\n%s", diff, text)
	}
	return true
}

func TestDecodeBlock(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/block/cases.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		t.Run(f.Name, func(t *testing.T) {
			want := f.Name[:len("block")] == "block"
			if got := sameAsLibrary(t, f.Data); got != want {
				t.Errorf("decoded: %t, want %t", got, want)
			}
		})
	}
}

// The library limits the length of a key as it is written.
func TestDecodeBlockLongKey(t *testing.T) {
	if sameAsLibrary(t, []byte("'"+strings.Repeat("''", 600)+"': a\n")) {
		t.Error("it is decoded")
	}
}

// A quoted text is read in linear time: this one would take minutes otherwise.
func TestDecodeBlockManyQuotes(t *testing.T) {
	text := "a: '" + strings.Repeat("''", 2<<20) + "'\n"
	if v, ok := decodeBlock(part{text: []byte(text), line: 1}, 0); !ok || len(v.content.(map[string]any)["a"].(string)) != 2<<20 {
		t.Errorf("decoded: %t", ok)
	}
}

// An object allocates its maps, lists and texts, and nothing for the YAML around them.
func TestDecodeBlockAllocates(t *testing.T) {
	text, err := os.ReadFile("testdata/block/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !sameAsLibrary(t, text) {
		t.Fatal("it is left to the library")
	}
	p := part{text: text, line: 1}
	const most = 36 // the text, nine maps, two lists, and an interface for each of the scalars
	if got := testing.AllocsPerRun(100, func() { decodeBlock(p, 0) }); got > most {
		t.Errorf("%v allocations, want no more than %d", got, most)
	}
}

func FuzzDecodeBlock(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/block/cases.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, text []byte) { sameAsLibrary(t, text) })
}

func BenchmarkDecodeBlock(b *testing.B) {
	text, err := os.ReadFile("testdata/block/deployment.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		decodeBlock(part{text: text, line: 1}, 0)
	}
}
