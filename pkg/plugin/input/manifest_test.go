package input

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var update = flag.Bool("update", false, "rewrite the want sections")

// TestRead runs testdata: the files of a case, what is read of them (the line
// "read ARGUMENTS"), and one line per object or error.
func TestRead(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			want := extract(t, archive, dir)
			got := strings.ReplaceAll(report(new(Reader), input(t, archive, dir)), dir+"/", "")
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Error("read something else (-want +got):\n" + diff)
			}
		})
	}
}

func extract(t *testing.T, archive *txtar.Archive, dir string) (want *txtar.File) {
	t.Helper()
	for i, file := range archive.Files {
		if file.Name == "want" {
			want = &archive.Files[i]
			continue
		}
		write(t, filepath.Join(dir, file.Name), string(file.Data))
	}
	if want == nil {
		t.Fatal("the case has no want section")
	}
	return want
}

func input(t *testing.T, archive *txtar.Archive, dir string) Files {
	t.Helper()
	_, line, found := strings.Cut(string(archive.Comment), "\nread ")
	if !found {
		t.Fatal(`the case has no line "read ARGUMENTS"`)
	}
	var input Files
	for _, argument := range strings.Fields(line) {
		if argument == "-R" {
			input.Recursive = true
			continue
		}
		input.Paths = append(input.Paths, filepath.Join(dir, argument))
	}
	return input
}

// report is what a read gives, a line per object and error.
func report(r *Reader, input Files) string {
	var b strings.Builder
	for d, err := range r.Read(context.Background(), input) {
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
			continue
		}
		name := d.Key.Name
		if ns := d.Key.Namespace; ns != "" {
			name += "." + ns
		}
		fmt.Fprintf(&b, "%s: %s %s\n", d.Origin, d.Key.Kind, name)
	}
	return b.String()
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readString(t *testing.T, text string) (string, map[string]any) {
	t.Helper()
	documents, err := (&Reader{Stdin: strings.NewReader(text)}).ReadAll(context.Background(), Files{Paths: []string{"-"}})
	if err != nil {
		return err.Error(), nil
	}
	if len(documents) != 1 {
		t.Fatalf("%d documents, want 1", len(documents))
	}
	return documents[0].Origin, documents[0].Object().Object
}

const header = "apiVersion: v1\nkind: ConfigMap\n"

func TestReadValuesAsKubectl(t *testing.T) {
	for _, text := range []string{
		"a: 1", "a: -7", "a: 0644", "a: 0o644", "a: 0x1F", "a: 1_000", "a: 1.0", "a: 1.5", "a: 1e3", "a: 1e30", "a: .5",
		"a: 9223372036854775807", "a: 9223372036854775808", "a: 18446744073709551616", "a: '1'", "a: !!str 1",
		"a: yes", "a: No", "a: on", "a: y", "a: 'yes'", "a: True", "a: ~", "a:", "a: null", "a: \"\"", "a: <<",
		"a: 2001-01-01", "a: 2001-01-01T00:00:00Z", "a: 1:30", "a: 1Gi", "a: 100m", "a: |\n  x\n  y\n", "a: >-\n  x\n  y\n",
		"1: x", "true: x", "yes: x", "1.5: x", "2001-01-01: x", "a: !!binary aGk=", "a: !custom x",
		"a: [1, [2, {b: c}], {}]", "a: {}", "x: &x {b: 1}\na: *x", "x: &x {b: 1}\na: {<<: *x, c: 2}",
		"a: \"\\u00e9 \\U0001F600\"", "a: é", "a: \"x\\\n  y\"", "a: - b", "a: \"#\" # c",
	} {
		t.Run(text, func(t *testing.T) {
			var want unstructured.Unstructured
			if err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(header+text+"\n"), 4096).Decode(&want); err != nil {
				if place, got := readString(t, header+text+"\n"); got != nil {
					t.Fatalf("kubectl refuses it (%v), read %v at %s", err, got, place)
				}
				return
			}
			place, got := readString(t, header+text+"\n")
			if diff := cmp.Diff(want.Object, got); diff != "" {
				t.Errorf("%s (-kubectl +got):\n%s", place, diff)
			}
		})
	}
}

func TestReadLineEndings(t *testing.T) {
	const object = "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: a\r\ndata: {a: |-\r\n"
	text := "\uFEFF# c\r\n---\r\n" + strings.TrimSuffix(object, "data: {a: |-\r\n") + "---\r\n\uFEFF" + header + "metadata: {name: b}"
	got := report(&Reader{Stdin: strings.NewReader(text)}, Files{Paths: []string{"-"}})
	if want := "stdin:3: ConfigMap a\nstdin:8: ConfigMap b\n"; got != want {
		t.Errorf("read\n%swant\n%s", got, want)
	}
	if got, _ := readString(t, "\xff\xfea\x00"); got != "stdin:1: the text is UTF-16: save it as UTF-8" {
		t.Error(got)
	}
}

func TestReadStandardInputOnce(t *testing.T) {
	r := &Reader{Stdin: strings.NewReader(header)}
	got := report(r, Files{Paths: []string{"-", "-"}})
	if want := "stdin:1: ConfigMap \nerror: stdin: standard input can be read only once: \"-\" was given twice\n"; got != want {
		t.Errorf("read\n%swant\n%s", got, want)
	}
	if got := report(new(Reader), Files{Paths: []string{"-"}}); !strings.Contains(got, "no standard input") {
		t.Error(got)
	}
}

func TestReadLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..data", "a.yaml"), header+"metadata: {name: a}")
	for link, target := range map[string]string{"a.yaml": "..data/a.yaml", "loop": ".", "gone.yaml": "nothing"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	got := strings.ReplaceAll(report(new(Reader), Files{Paths: []string{dir}, Recursive: true}), dir+"/", "")
	if want := "a.yaml:1: ConfigMap a\nerror: gone.yaml: no such file or directory\n"; got != want {
		t.Errorf("read\n%swant\n%s", got, want)
	}
}

func TestLimits(t *testing.T) {
	bomb := header + "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	long := header + "a: &a \"" + strings.Repeat("x", 100_000) + "\"\nb: [" + strings.Repeat("*a,", 10_000) + "]\n"
	cases := []struct{ name, text, want string }{
		{"aliases of aliases", bomb, "aliases expand to more than"},
		{"aliases of a long text", long, "aliases expand to more than"},
		{"an alias to what holds it", header + "a: &a [*a]\n", "nested more than"},
		{"deep YAML", header + "a: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "nested more than"},
		{"very deep YAML", header + "a: " + strings.Repeat("[", 200_000), "invalid YAML"},
		{"deep JSON", `{"a":` + strings.Repeat("[", 100_000), "nested more than"},
		{"a large document", header + "a: " + strings.Repeat("x", 1<<20), "the document is larger than 1048576 bytes"},
		{"many lines", header + strings.Repeat("#\n", 1<<20), "the document is larger than 1048576 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := report(&Reader{Stdin: strings.NewReader(c.text), MaxDocument: 1 << 20}, Files{Paths: []string{"-"}})
			if !strings.Contains(got, "error: stdin:") || !strings.Contains(got, c.want) {
				t.Errorf("read %.200s\nwant an error that says %q", got, c.want)
			}
		})
	}
	t.Run("aliases of many documents", func(t *testing.T) {
		text := strings.Repeat(header+"a: &a ["+strings.Repeat("x,", 1000)+"]\nb: ["+strings.Repeat("*a,", 10)+"]\n---\n", 100)
		if got := report(&Reader{Stdin: strings.NewReader(text)}, Files{Paths: []string{"-"}}); !strings.Contains(got, "aliases expand to more than") {
			t.Errorf("read all of it, although its aliases expand to 17 MB")
		}
	})
}

func TestReadCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &Reader{Stdin: strings.NewReader(strings.Repeat(header+"---\n", 3))}
	var n int
	for _, err := range r.Read(ctx, Files{Paths: []string{"-", "elsewhere.yaml"}}) {
		if n++; n == 1 {
			cancel()
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after cancelling: %v", err)
		}
	}
	if n != 2 {
		t.Errorf("%d results, want one object and the cancellation", n)
	}
}

// Go panics where an iterator goes on after the loop has ended.
func TestReadStopped(t *testing.T) {
	reader := &Reader{Stdin: strings.NewReader(header + "---\n" + header)}
	n := 0
	for _, err := range reader.Read(t.Context(), Files{Paths: []string{"-", "-"}}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d documents before the end, want 1", n)
	}
}

func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(string(file.Data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := &Reader{Stdin: strings.NewReader(text), MaxDocument: 1 << 16}
		for d, err := range r.Read(context.Background(), Files{Paths: []string{"-"}}) {
			if err == nil {
				d.Object().DeepCopy() // panics on a value that unstructured objects cannot hold
			}
		}
	})
}
