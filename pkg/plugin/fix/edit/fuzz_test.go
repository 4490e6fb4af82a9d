package edit_test

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fix/edit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// FuzzApply changes any file at a random place. Either it is refused, or what comes out means what is wanted, has all
// other documents byte for byte, and all lines that do not hold the place; and taking the change back gives
// a file that means what it meant.
func FuzzApply(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for i, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for seed := range uint64(3) {
			f.Add(archive.Files[0].Data, uint64(i)+seed*1000)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		read, err := input.ReadText(t.Context(), "file", text)
		if err != nil || len(read) == 0 {
			return
		}
		random := rand.New(rand.NewPCG(seed, 1))
		all := make([]edit.Document, len(read))
		for i, d := range read {
			all[i] = edit.Document{Before: d.Object().Object, After: d.Object().Object}
		}
		same, err := edit.Apply(t.Context(), text, all)
		if err != nil {
			var refused *edit.Error
			if !errors.As(err, &refused) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(same, text) {
			t.Fatalf("without a change\n%q became\n%q", text, same)
		}
		i := random.IntN(len(all))
		after, _ := changed(random, all[i].Before).(map[string]any)
		if after["kind"] != all[i].Before["kind"] || after["apiVersion"] != all[i].Before["apiVersion"] || after["items"] != nil || after["metadata"] == nil {
			return // another object, or none
		}
		all[i].After = after
		got, err := edit.Apply(t.Context(), text, all)
		if err != nil {
			return
		}
		if !bytes.ContainsRune(text, '&') { // an alias elsewhere may be written out
			before, behind := around(text, read, i)
			if !bytes.HasPrefix(got, before) || !bytes.HasSuffix(got, behind) {
				t.Fatalf("more than document %d of\n%s\nhas changed:\n%s", i, text, got)
			}
		}
		if lost := lostComments(text, got); lost != "" && !bytes.Contains(text, []byte("'")) && !bytes.Contains(text, []byte(`"`)) && !removes(all[i].Before, after) {
			t.Fatalf("%q is lost of\n%s\nwhich became\n%s", lost, text, got)
		}
		back := make([]edit.Document, len(all))
		for j, d := range all {
			back[j] = edit.Document{Before: d.After, After: d.Before}
		}
		again, err := input.ReadText(t.Context(), "file", got)
		if err != nil {
			t.Fatal(err)
		}
		for j := range back {
			back[j].Before = again[j].Object().Object
		}
		if _, err := edit.Apply(t.Context(), got, back); err != nil {
			var refused *edit.Error
			if !errors.As(err, &refused) {
				t.Fatal(err)
			}
		}
	})
}

// around returns what is before a document, and behind it from the next one on.
func around(text []byte, documents []engine.Document, i int) (before, behind []byte) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	start := func(i int) int {
		_, line, _ := strings.Cut(documents[i].Origin, ":")
		n, _ := strconv.Atoi(line)
		return n - 1
	}
	before = bytes.Join(lines[:start(i)], nil)
	for j := i + 1; j < len(documents); j++ {
		if start(j) > start(i) {
			return before, bytes.Join(lines[start(j):], nil)
		}
	}
	return before, nil
}

// lostComments returns a comment line of a string that another one does not have.
func lostComments(text, other []byte) string {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("# ")) && !bytes.Contains(other, line) {
			return string(line)
		}
	}
	return ""
}

// removes reports whether a value lacks something that another one has, or has something else in its place.
func removes(before, after any) bool {
	switch b := before.(type) {
	case map[string]any:
		a, isMap := after.(map[string]any)
		for key, v := range b {
			now, has := a[key]
			if !isMap || !has || removes(v, now) {
				return true
			}
		}
	case []any:
		a, isList := after.([]any)
		if !isList || len(a) < len(b) {
			return true
		}
		for i := range b {
			if removes(b[i], a[i]) {
				return true
			}
		}
	case string:
		_, still := after.(string)
		return !still || bytes.ContainsRune([]byte(b), '#')
	}
	return false
}

var values = []any{
	"x", "", "true", "1", "a: b", "# no comment", "- x", "two\nlines\n", "ends with space ", "ünï", "it's", `"`, "{", "*a", "&a", "!t", "%", "~", "y",
	int64(7), 2.5, true, nil,
	map[string]any{},
	[]any{},
	map[string]any{"name": "n", "a": []any{"b", map[string]any{"c": int64(1)}}},
	[]any{map[string]any{"name": "z"}, "w"},
}

// changed returns a value with a change at a random place.
func changed(random *rand.Rand, v any) any {
	some := values[random.IntN(len(values))]
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		out := maps.Clone(v)
		switch n := random.IntN(10); {
		case n == 0 || len(keys) == 0:
			out[[]string{"added", "a/b", "1", "on", "x: y"}[random.IntN(5)]] = some
		case n == 1:
			delete(out, keys[random.IntN(len(keys))])
		default:
			key := keys[random.IntN(len(keys))]
			out[key] = changed(random, v[key])
		}
		return out
	case []any:
		out := slices.Clone(v)
		switch n := random.IntN(6); {
		case n == 0 || len(v) == 0:
			return slices.Insert(out, random.IntN(len(v)+1), some)
		case n == 1:
			i := random.IntN(len(v))
			return slices.Delete(out, i, i+1)
		default:
			i := random.IntN(len(v))
			out[i] = changed(random, v[i])
			return out
		}
	}
	return some
}
