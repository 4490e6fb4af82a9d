package fix

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fix/edit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// diff returns the unified diff of the file for git apply, with masked values of Secrets.
func (f *manifest) diff(ctx context.Context, explain bool) string {
	name := strings.TrimPrefix(shownPath(f.path), "/")
	if strings.ContainsAny(name, " \t") {
		name += "\t" // ends a name with spaces
	}
	from, to := "a/"+name, "b/"+name
	if f.before == nil {
		from = "/dev/null"
	}
	if f.text == nil {
		to = "/dev/null"
	}
	before, after, ok := f.texts(ctx)
	if !ok {
		return "--- " + from + "\n+++ " + to + "\n# not shown: values of Secrets in it cannot be masked\n"
	}
	lines := strings.SplitAfter(udiff.Unified(from, to, before, after), "\n")
	if explain {
		f.explain(ctx, lines)
	}
	for i, line := range lines {
		body, end := line, ""
		for _, e := range []string{"\r\n", "\n"} {
			if rest, found := strings.CutSuffix(line, e); found {
				body, end = rest, e
				break
			}
		}
		lines[i] = redact.EscapeLines(body) + end
	}
	return strings.Join(lines, "")
}

// hunk matches the head of a hunk with its lines before and after the change.
var hunk = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// explain names, in the head of each hunk, the rules that write its fields, where git names a function.
func (f *manifest) explain(ctx context.Context, lines []string) {
	var rules [2]map[int][]string // by the lines before and after
	for state, text := range [][]byte{f.before, f.text} {
		r := input.Reader{Instead: map[string][]byte{f.path: text}}
		documents, err := r.ReadAll(ctx, input.Files{Paths: []string{f.path}, Lines: true})
		if err != nil && !f.patch {
			return
		}
		rules[state] = map[int][]string{}
		for i, fields := range f.fields {
			for _, field := range fields {
				if (field.Kind == engine.Removed && !f.patch) != (state == 0) { // a patch names removed fields
					continue
				}
				line := 0 // the whole document, as in a JSON patch
				if i < len(documents) && documents[i].Line != nil {
					line = documents[i].Line(edit.Field(documents[i].Object().Object, field.Path))
				}
				rules[state][line] = append(rules[state][line], field.Rule().String())
			}
		}
	}
	for i, text := range lines {
		head := hunk.FindStringSubmatch(text)
		if head == nil {
			continue
		}
		var named []string
		for state := range rules {
			named = append(named, rules[state][0]...)
			first, _ := strconv.Atoi(head[1+2*state])
			count, err := strconv.Atoi(head[2+2*state])
			if err != nil {
				count = 1
			}
			for line := first; line < first+count; line++ {
				named = append(named, rules[state][line]...)
			}
		}
		if slices.Sort(named); len(named) > 0 {
			lines[i] = strings.TrimSuffix(text, "\n") + " " + strings.Join(slices.Compact(named), ", ") + "\n"
		}
	}
}

// shownPath returns a path relative to the working directory if it is below that.
func shownPath(path string) string {
	if directory, err := os.Getwd(); err == nil {
		if absolute, err := filepath.Abs(path); err == nil {
			if relative, err := filepath.Rel(directory, absolute); err == nil && filepath.IsLocal(relative) {
				path = relative
			}
		}
	}
	return redact.EscapeLine(filepath.ToSlash(filepath.Clean(path)))
}

// comment matches the comments of YAML, and strings that look alike.
var comment = regexp.MustCompile(`(?m)(^|[ \t])#.*?(\r?)$`)

// texts returns both states as they may be shown, and whether they may.
func (f *manifest) texts(ctx context.Context) (before, after string, ok bool) {
	if f.hide {
		return "", "", false
	}
	secret := false
	var shownBefore, shownAfter []edit.Document
	for i := range max(len(f.first), len(f.now)) {
		was, is := documentOr(f.first, f.now, i), documentOr(f.now, f.first, i)
		secret = secret || engine.IsSecret(was) || engine.IsSecret(is) || len(f.hidden[i]) > 0
		c := &engine.Change{Subject: engine.KeyOf(is), Before: was, After: is, Fields: diff.Compare(was.Object,
			is.Object, diff.Type{})}
		evaluation.Hide(c, f.hidden[i])
		shown := c.ToShow()
		if c.Shown == nil { // it does not change
			shown = &engine.Change{Before: engine.HideObject(was), After: engine.HideObject(is)}
		}
		shownBefore = append(shownBefore, edit.Document{Before: was.Object, After: shown.Before.Object})
		shownAfter = append(shownAfter, edit.Document{Before: is.Object, After: shown.After.Object})
	}
	if !secret {
		return string(f.before), string(f.text), true
	}
	b, errBefore := masked(ctx, f.before, shownBefore)
	a, errAfter := masked(ctx, f.text, shownAfter)
	return b, a, errBefore == nil && errAfter == nil && a != b
}

// documentOr returns a document of a state of the file or, if the state lacks it, the empty object of its
// kind.
func documentOr(state, other []engine.Document, i int) *unstructured.Unstructured {
	if i < len(state) {
		return state[i].Object()
	}
	object := other[i].Object()
	return &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind()},
	}
}

// masked returns a state of the file with masked documents, and only the comment of fix, since a comment may
// repeat a value of the Secret.
func masked(ctx context.Context, text []byte, shown []edit.Document) (string, error) {
	if len(text) == 0 {
		return "", nil
	}
	text, err := edit.Apply(ctx, text, shown)
	rest, head := bytes.CutPrefix(text, []byte(patchHead))
	rest = comment.ReplaceAll(rest, []byte("$1# "+engine.HiddenValue+"$2"))
	if head {
		return patchHead + string(rest), err
	}
	return string(rest), err
}
