package blockyaml

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
)

// options have the library resolve plain scalars.
func options() Options {
	return Options{Depth: 500, Scalar: func(plain string) (any, bool) {
		v, err := value(&yamlv3.Node{Kind: yamlv3.ScalarNode, Value: plain})
		return v, err == nil
	}}
}

// library decodes the only document of a string with the library. A blank line before it has its lines count
// from 1.
func library(text []byte) (Document, error) {
	decoder := yamlv3.NewDecoder(io.MultiReader(strings.NewReader("\n"), bytes.NewReader(text)))
	var document, more yamlv3.Node
	if err := decoder.Decode(&document); err != nil {
		return Document{}, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return Document{}, errors.New("there is more than a document")
	}
	root := document.Content[0]
	d := Document{Line: root.Line - 1}
	var err error
	d.Content, err = value(root)
	return d, err
}

// value converts a node, whose integers are of the type that unstructured objects hold.
func value(n *yamlv3.Node) (any, error) {
	switch n.Kind {
	case yamlv3.MappingNode:
		var unique map[string]yamlv3.Node
		if err := n.Decode(&unique); err != nil {
			return nil, err
		}
		out := map[string]any{}
		for key, n := range unique {
			v, err := value(&n)
			if err != nil {
				return nil, err
			}
			out[key] = v
		}
		return out, nil
	case yamlv3.SequenceNode:
		out := []any{}
		for _, n := range n.Content {
			v, err := value(n)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	var v any
	err := n.Decode(&v)
	if i, is := v.(int); is {
		v = int64(i)
	}
	return v, err
}

// sameAsLibrary reports whether Decode decodes a string, and fails the test where the library
// makes anything else of it.
func sameAsLibrary(t *testing.T, text []byte) bool {
	t.Helper()
	got, ok := Decode(text, options())
	if !ok {
		return false
	}
	want, err := library(text)
	if err != nil {
		t.Fatalf("the library has the error %v:\n%s", err, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-library +block:\n%s\nof:\n%s", diff, text)
	}
	return true
}

func cases(t testing.TB) []txtar.File {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/cases.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return archive.Files
}

func TestDecode(t *testing.T) {
	for _, f := range cases(t) {
		t.Run(f.Name, func(t *testing.T) {
			want := f.Name[:len("block")] == "block"
			if got := sameAsLibrary(t, f.Data); got != want {
				t.Errorf("decoded: %t, want %t", got, want)
			}
		})
	}
}

// The library limits the length of a key as it is written.
func TestDecodeLongKey(t *testing.T) {
	if sameAsLibrary(t, []byte("'"+strings.Repeat("''", 600)+"': a\n")) {
		t.Error("it is decoded")
	}
}

// A quoted text is read in linear time: this one would take minutes otherwise.
func TestDecodeManyQuotes(t *testing.T) {
	text := "a: '" + strings.Repeat("''", 2<<20) + "'\n"
	if d, ok := Decode([]byte(text), options()); !ok || len(d.Content.(map[string]any)["a"].(string)) != 2<<20 {
		t.Errorf("decoded: %t", ok)
	}
}

// An object allocates its maps, lists and strings, and nothing for the YAML around them.
func TestDecodeAllocates(t *testing.T) {
	text, err := os.ReadFile("testdata/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !sameAsLibrary(t, text) {
		t.Fatal("it is left to the library")
	}
	o := options()
	const most = 36 // the text, nine maps, two lists, and an interface for each of the scalars
	if got := testing.AllocsPerRun(100, func() { Decode(text, o) }); got > most {
		t.Errorf("%v allocations, want no more than %d", got, most)
	}
}

func FuzzDecode(f *testing.F) {
	for _, file := range cases(f) {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, text []byte) { sameAsLibrary(t, text) })
}

func BenchmarkDecode(b *testing.B) {
	text, err := os.ReadFile("testdata/deployment.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Decode(text, options())
	}
}
