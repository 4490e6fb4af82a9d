package input

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mixed are documents of all sorts, of which some are errors.
func mixed() (texts []string) {
	for i := range 3 * batchDocuments {
		text := fmt.Sprintf("kind: A\napiVersion: v1\nmetadata: {name: n%d}\n", i)
		switch i % 16 {
		case 3:
			text += "kind: B\n" // twice
		case 5:
			text = fmt.Sprintf(`{"kind":"A","apiVersion":"v1","metadata":{"name":"n%d"}}`+"\n", i)
		case 7:
			text = "kind: List\napiVersion: v1\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
		case 9:
			text = "kind: A\n" // no object
		case 11:
			text = text + "text: " + strings.Repeat("x", batchBytes) + "\n"
		}
		texts = append(texts, text)
	}
	return texts
}

// What is read in batches is what is read document by document, in the same order.
func TestBatchesReadAsDocumentsDo(t *testing.T) {
	texts := mixed()
	read := func(text string) (out []string) {
		for d, err := range (&Reader{Stdin: strings.NewReader(text)}).Read(context.Background(), Files{Paths: []string{"-"}}) {
			if err != nil {
				out = append(out, err.Error())
			} else {
				out = append(out, fmt.Sprint(d.Origin, d.Object().Object))
			}
		}
		return out
	}
	var want []string
	above := ""
	for _, text := range texts {
		want = append(want, read(above+text)...) // at its line
		above += strings.Repeat("\n", strings.Count("---\n"+text, "\n"))
	}
	if diff := cmp.Diff(want, read(strings.Join(texts, "---\n"))); diff != "" {
		t.Errorf("-alone +together:\n%.3000s", diff)
	}
}
