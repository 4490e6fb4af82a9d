package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

const (
	testGroup = "writepath.example.com"
	manager   = write.DefaultFieldManager
	creator   = "kubectl-create"
)

var update = flag.Bool("update", false, "rewrite the golden table of the write path, the recordings that pkg/plugin/write/request replays, and what the server answers to the cases of testdata/oracle")

// tableFile holds a line per case: the result of each of its changes.
var tableFile = filepath.Join("testdata", "writepath", "table.md")

// TestWritePath makes changes to objects with all kinds of owners, schemas and
// oddities, one after the other, and compares the result of each with the golden
// table. Whatever the table says, nothing may be lost: a write answers
// what was wanted, or differs from it in a way that its row names.
//
// The cases are run in order, because some continue where another ended.
func TestWritePath(t *testing.T) {
	if !*update {
		tier.Night(t, "TestPlanReplaysRecordings of pkg/plugin/write/request")
	}
	w := newWritePath(t)
	golden := readTable(t)
	var rows []row
	for _, c := range writePathCases(w) {
		t.Run(c.name, func(t *testing.T) {
			r := w.run(t, c)
			rows = append(rows, r)
			if d := cmp.Diff(golden[c.name], r.String()); d != "" && !*update {
				t.Errorf("another result than before (-want +got):\n%s", d)
			}
		})
	}
	if *update {
		writeTable(t, rows)
	}
}

// writePath is what the cases share.
type writePath struct {
	*writePathServer
	t         *testing.T // of the test as a whole: what cases make stays until its end
	ctx       context.Context
	writer    *write.Writer
	namespace string
	objects   map[string]string // of testdata/writepath/objects.txtar
}

func newWritePath(t *testing.T) *writePath {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "writepath", "objects.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	s := newWritePathServer(t)
	w := &writePath{writePathServer: s, t: t, ctx: t.Context(), namespace: newNamespace(t), objects: map[string]string{}}
	for _, f := range archive.Files {
		w.objects[f.Name] = string(f.Data)
	}
	yes := func(context.Context, write.Result) (bool, error) { return true, nil }
	w.writer = &write.Writer{Server: s, Manager: manager, Allowed: journal.Allowed{ForceConflicts: true, IncludeManaged: true}, DryRun: write.DryRunNone, Confirm: yes}
	return w
}

// manifest fills in an object of the archive, with text replaced by other text.
func (w *writePath) manifest(object, name string, replace ...string) string {
	text := strings.NewReplacer("NAMESPACE", w.namespace, "NAME", name).Replace(w.objects[object])
	for i := 0; i+1 < len(replace); i += 2 {
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

// key names an object in the test's namespace.
func (w *writePath) key(group, version, kind, name string) engine.ObjectKey {
	return engine.ObjectKey{
		GroupKind: schema.GroupKind{Group: group, Kind: kind}, Version: version, Namespace: w.namespace, Name: name,
	}
}

// define makes a custom resource and has it deleted at the end.
func (w *writePath) define(kind string, schemas ...string) error {
	before, _ := w.document(schema.GroupVersion{Group: testGroup, Version: "v1"}) // none is fine: it is the first
	definition, err := w.definition(kind, schemas...)
	if err != nil {
		return err
	}
	client := w.resource(engine.KeyOf(definition))
	if _, err := client.Create(w.ctx, definition, metav1.CreateOptions{FieldManager: creator}); err != nil {
		return err
	}
	w.deleteAtEnd(definition)
	if err := w.awaitSchema(kind, before); err != nil {
		return err
	}
	return w.connect()
}

// deleteAtEnd is for what has no namespace.
func (w *writePath) deleteAtEnd(object *unstructured.Unstructured) {
	w.t.Cleanup(func() {
		client := w.resource(engine.KeyOf(object))
		if err := client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil {
			w.t.Error(err)
		}
	})
}

// redefine changes the schema under stored objects. What the writer knows of it
// stays.
func (w *writePath) redefine(kind, named string) error {
	before, err := w.document(schema.GroupVersion{Group: testGroup, Version: "v1"})
	if err != nil {
		return err
	}
	definition, err := w.definition(kind, named)
	if err != nil {
		return err
	}
	client := w.resource(engine.KeyOf(definition))
	stored, err := client.Get(w.ctx, definition.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	stored.Object["spec"] = definition.Object["spec"]
	if _, err := client.Update(w.ctx, stored, metav1.UpdateOptions{FieldManager: "x"}); err != nil {
		return err
	}
	return w.awaitSchema(kind, before)
}

// definition has a version for each schema, v1 first, which is the stored one.
func (w *writePath) definition(kind string, schemas ...string) (*unstructured.Unstructured, error) {
	singular := strings.ToLower(kind)
	var versions []any
	for i, name := range schemas {
		var s map[string]any
		if err := yaml.Unmarshal([]byte(w.objects["schema/"+name]), &s); err != nil {
			return nil, err
		}
		versions = append(versions, map[string]any{
			"name": fmt.Sprintf("v%d", i+1), "served": true, "storage": i == 0,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema":       map[string]any{"openAPIV3Schema": s},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": singular + "s." + testGroup},
		"spec": map[string]any{
			"group": testGroup, "scope": "Namespaced", "versions": versions,
			"names": map[string]any{"kind": kind, "plural": singular + "s", "singular": singular},
		},
	}}, nil
}

// writeCase is a few changes to one object, made one after the other.
type writeCase struct {
	name    string
	key     engine.ObjectKey
	setup   func() error
	changes []mutation
	between func() error // after the first change
	large   bool         // too large to be recorded
}

// run makes the changes of a case; after each, all changes up to it are asked
// for again.
func (w *writePath) run(t *testing.T, c writeCase) row {
	if c.setup != nil {
		if err := c.setup(); err != nil {
			t.Fatalf("setup: %v", err)
		}
	}
	r := row{name: c.name}
	rec := recording{name: c.name, subresource: c.key.Subresource}
	var made []mutation
	for i, change := range c.changes {
		if i == 1 && c.between != nil {
			if err := c.between(); err != nil {
				t.Fatalf("between: %v", err)
			}
		}
		after, result := w.write(t, c.key, change)
		r.add(result)
		w.checkConflicts(t, result)
		rec.add(t, w, after, result)
		r.again = "-"
		if result.Err == nil {
			made = append(made, change)
			r.again = w.again(t, c.key, made)
		}
	}
	if *update && !c.large {
		rec.save(t)
	}
	return r
}

// write makes one change, and gives the state that was wanted in the end.
func (w *writePath) write(t *testing.T, key engine.ObjectKey, change mutation) (*unstructured.Unstructured, write.Result) {
	t.Helper()
	w.answer, w.unforced = nil, nil
	var after *unstructured.Unstructured
	result, err := verifyAndWrite(w.ctx, w.writer, key, func(ctx context.Context, live *unstructured.Unstructured, _ string) (_ *unstructured.Unstructured, err error) {
		after, err = wanted(change)(ctx, live, "")
		return after, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return after, result
}

// verifyAndWrite is how the commands change one object.
func verifyAndWrite(ctx context.Context, w *write.Writer, key engine.ObjectKey, want write.Want) (write.Result, error) {
	v, err := w.Verify(ctx, key, nil, want)
	if err != nil || v.Outcome != write.Planned {
		return v.Result, err
	}
	if yes, err := w.ConfirmLoss(ctx, v); !yes || err != nil {
		return v.Result, err
	}
	return w.Write(ctx, v)
}

// wanted makes a change of whatever is live.
func wanted(change mutation) write.Want {
	return func(_ context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
		after := live.DeepCopy()
		change(after.Object)
		return after, nil
	}
}

// again asks for changes that have been made: "0" where there is nothing to
// send, "n" where the dry run answers the live object, "X" where a change is due.
func (w *writePath) again(t *testing.T, key engine.ObjectKey, made []mutation) string {
	signs := ""
	for _, change := range made {
		_, r := w.write(t, key, change)
		switch {
		case r.Method == request.None:
			signs += "0"
		case r.Outcome == write.Unchanged, r.Outcome == write.ServerKeepsValue:
			signs += "n"
		default:
			signs += "X"
		}
	}
	return signs
}

// checkConflicts demands that the takeovers that the plugin reads from the dry
// run are those that the server itself reports when it is not forced.
func (w *writePath) checkConflicts(t *testing.T, r write.Result) {
	t.Helper()
	if r.Method != request.Apply || r.Err != nil {
		return
	}
	if d := cmp.Diff(w.unforced, owners(r.Takeovers, allFields)); d != "" {
		t.Errorf("other takeovers than the server's conflicts (-server +plugin):\n%s", d)
	}
}

// allFields counts as the server's conflicts do, leaves as a reader would.
func allFields(o request.Takeover) int { return o.Fields.Size() }
func leaves(o request.Takeover) int    { return o.Fields.Leaves().Size() }

// owners says who loses how many fields: "argocd(A)-2".
func owners(takeovers []request.Takeover, count func(request.Takeover) int) []string {
	lost := map[string]int{}
	for _, o := range takeovers {
		lost[fmt.Sprintf("%s(%.1s)", o.Manager, o.Operation)] += count(o)
	}
	return counted(lost)
}

func counted(fields map[string]int) []string {
	var out []string
	for _, who := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, fmt.Sprintf("%s-%d", who, fields[who]))
	}
	return out
}

// conflictCauses reads whom the server names in a 409, and how many fields of theirs.
func conflictCauses(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	fields := map[string]int{}
	for _, c := range status.Status().Details.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		_, rest, _ := strings.Cut(c.Message, `conflict with "`)
		who, rest, _ := strings.Cut(rest, `"`)
		if strings.Contains(rest, " using ") {
			who += "(U)"
		} else {
			who += "(A)"
		}
		fields[who]++
	}
	return counted(fields)
}

func readTable(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(tableFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, " | "); len(fields) > 1 {
			rows[strings.TrimPrefix(fields[0], "| ")] = strings.TrimSpace(line)
		}
	}
	return rows
}

func writeTable(t *testing.T, rows []row) {
	t.Helper()
	var b strings.Builder
	b.WriteString(tableHead)
	for _, r := range rows {
		b.WriteString(r.String() + "\n")
	}
	if err := os.WriteFile(tableFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

const tableHead = `What becomes of the changes of each case, in order.

- Request: what is sent, and why it is no server-side apply; "no-op" is a dry run that answers the live object.
- Takes from: who loses how many fields, U by Update, A by Apply.
- Answer: in which ways the dry run differs from what is wanted.
- Gains: what the manager's entry grows by: "exact" is nothing but the changed fields.
- Again: a sign for each change asked for at the end: 0 nothing to send, n a no-op, X a change is due.

| Case | Request | Takes from | Answer | Gains | Again |
|---|---|---|---|---|---|
`

// row is a line of the table.
type row struct {
	name                          string
	request, takes, answer, gains []string
	again                         string
}

func (r row) String() string {
	column := func(cells []string) string { return strings.Join(cells, " / ") }
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |",
		r.name, column(r.request), column(r.takes), column(r.answer), column(r.gains), r.again)
}

func (r *row) add(result write.Result) {
	takes := strings.Join(owners(result.Takeovers, leaves), ",")
	if takes == "" || result.Outcome != write.Applied {
		takes = "-"
	}
	r.request = append(r.request, requestOf(result))
	r.takes = append(r.takes, takes)
	r.answer = append(r.answer, answerOf(result))
	r.gains = append(r.gains, gainsOf(result))
}

func requestOf(r write.Result) string {
	text := string(r.Method)
	if !r.Reason.None() {
		text += " (" + string(r.Reason.Kind) + ")"
	}
	var status apierrors.APIStatus
	switch {
	case asStatus(r.Err, &status):
		text += fmt.Sprintf(", rejected %d", status.Status().Code)
	case r.Err != nil:
		text += ", " + string(r.Outcome)
	case r.Method != request.None && r.Outcome != write.Applied:
		text += ", no-op"
	}
	return text
}

func answerOf(r write.Result) string {
	var classes []string
	for _, f := range r.Difference {
		if !slices.Contains(classes, string(f.Class)) {
			classes = append(classes, string(f.Class))
		}
	}
	if r.Err != nil {
		return "-"
	}
	if len(classes) == 0 {
		return "="
	}
	slices.Sort(classes)
	return strings.Join(classes, ", ")
}

// gainsOf compares the manager's own entry before and after the write.
func gainsOf(r write.Result) string {
	if r.Outcome != write.Applied {
		return "-"
	}
	before, after := ownFields(r, r.Before), ownFields(r, r.After)
	keys, more := 0, 0
	after.Difference(before).Difference(r.Changed).Leaves().Iterate(func(p fieldpath.Path) {
		switch {
		case isKeyField(p):
			keys++
		case p[len(p)-1].Key == nil:
			more++
		}
	})
	var parts []string
	if keys > 0 {
		parts = append(parts, fmt.Sprintf("%d key(s)", keys))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("+%d more", more))
	}
	if !before.Difference(after).Leaves().Empty() {
		parts = append(parts, "fewer")
	}
	if len(parts) == 0 {
		return "exact"
	}
	return strings.Join(parts, ", ")
}

func ownFields(r write.Result, object *unstructured.Unstructured) *fieldpath.Set {
	operation := metav1.ManagedFieldsOperationUpdate
	if r.Method == request.Apply {
		operation = metav1.ManagedFieldsOperationApply
	}
	set := fieldpath.NewSet()
	for _, e := range object.GetManagedFields() {
		if e.Manager != manager || e.Operation != operation || e.Subresource != r.Key.Subresource {
			continue
		}
		one := fieldpath.NewSet()
		if err := one.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			panic(err)
		}
		set = set.Union(one)
	}
	return set
}

func isKeyField(p fieldpath.Path) bool {
	n := len(p)
	if n < 2 || p[n-2].Key == nil || p[n-1].FieldName == nil {
		return false
	}
	for _, k := range *p[n-2].Key {
		if k.Name == *p[n-1].FieldName {
			return true
		}
	}
	return false
}
