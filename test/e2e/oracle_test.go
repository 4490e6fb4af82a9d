package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/test/corpus"
)

// TestOracle asks a real API server what MutatingAdmissionPolicies do, and holds
// kubectl-mutate against its answers, field by field.
//
// Each case has namespaces of its own, and its policies are confined to them.
// While no policy is installed, kubectl-mutate says what would become of the
// objects, and what it says goes to the server as a dry run: so the server adds
// its defaults to it, or refuses it. Then all policies are installed, and the
// objects as they are go to the server as a dry run. Both answers must be the
// same object, or the same refusal.
//
// The cases are testdata/oracle, each of which records what the server answers
// (-update writes that), and those of test/corpus.
func TestOracle(t *testing.T) {
	o := newOracle(t)
	cases := append(ownOracleCases(t), corpusOracleCases(t)...)
	for i, c := range cases {
		if err := c.place(fmt.Sprintf("oracle-%s-%d", o.id, i)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				// All that -run chooses are known before the first one continues.
				o.chosen = append(o.chosen, c)
				t.Parallel()
				if err := o.prepared(); err != nil {
					t.Fatal(err)
				}
				o.judge(t, c)
			})
		}
	})
	if t.Failed() {
		return // one run over all of them would only say it again
	}
	t.Run("all installed", func(t *testing.T) { o.judgeTogether(t, o.plugin.installed) })
	t.Run("all from manifests", func(t *testing.T) { o.judgeTogether(t, o.plugin.manifests) })
}

// oracle is what the cases share.
type oracle struct {
	id       string
	server   *oracleServer
	plugin   *oraclePlugin
	chosen   []*oracleCase
	prepared func() error // all that comes before the comparison, done once
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	dir := t.TempDir()
	check(t, buildPlugin(dir))
	plugin, err := newOraclePlugin(dir)
	check(t, err)
	o := &oracle{id: rand.String(5), server: newOracleServer(t), plugin: plugin}
	ctx := t.Context()
	o.prepared = sync.OnceValue(func() error { return o.prepare(ctx) })
	return o
}

// prepare predicts while nothing is installed, and then installs everything.
// What goes wrong in one case stays in that case.
func (o *oracle) prepare(ctx context.Context) error {
	o.each(ctx, o.server.create)
	o.each(ctx, o.predict)
	o.each(ctx, o.server.install)
	return o.server.awaitInstalled(ctx, "oracle-"+o.id)
}

func (o *oracle) each(ctx context.Context, do func(context.Context, *oracleCase) error) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	for _, c := range o.chosen {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if c.err == nil {
				c.err = do(ctx, c)
			}
		})
	}
	all.Wait()
}

// predict asks kubectl-mutate, and the server what it makes of the answer.
func (o *oracle) predict(ctx context.Context, c *oracleCase) error {
	var err error
	if c.predicted, err = o.plugin.preview(ctx, c); err != nil {
		return err
	}
	for i, object := range c.live {
		a := c.predicted.answers[i]
		if a.outcome == isChanged {
			a = o.server.ask(ctx, c, object, a.object)
		}
		c.ours = append(c.ours, a)
	}
	return nil
}

// judge asks the server what the installed policies do, and compares.
func (o *oracle) judge(t *testing.T, c *oracleCase) {
	if c.err != nil {
		t.Fatal(c.err)
	}
	var theirs []answer
	for _, object := range c.live {
		theirs = append(theirs, o.server.ask(t.Context(), c, object, object))
	}
	text, ourText := c.describe(c.refusals, theirs), c.describe(c.predicted.refusals, c.ours)
	if c.file != "" {
		c.compareRecord(t, recordSection, text)
	}
	found := c.compare(theirs)
	switch {
	case c.Differs == "":
		for _, difference := range found {
			t.Error(difference)
		}
	case len(found) == 0:
		t.Errorf("the answers are the same, although the case says that they differ: %s", c.Differs)
	default:
		c.compareRecord(t, differsSection, ourText)
	}
	if t.Failed() {
		t.Logf("the server:\n%s\nkubectl-mutate:\n%s\n%s", text, ourText, c.predicted.stderr)
	}
}

// compare lists what the server and kubectl-mutate do not agree on.
func (c *oracleCase) compare(theirs []answer) []string {
	var found []string
	if (len(c.refusals) > 0) != (len(c.predicted.refusals) > 0) {
		found = append(found, "one of the two refuses the policies, and the other does not")
	}
	for i, object := range c.live {
		if d := theirs[i].difference(c.ours[i]); d != "" {
			found = append(found, fmt.Sprintf("%s %s (-server +kubectl-mutate):\n%s", object.GetKind(), object.GetName(), d))
		}
	}
	return found
}

// compareRecord demands that an answer is the one that was given when the case was
// written: a case whose policy does nothing would prove nothing.
func (c *oracleCase) compareRecord(t *testing.T, section, text string) {
	d := cmp.Diff(strings.Split(c.recorded[section], "\n"), strings.Split(text, "\n"))
	switch {
	case d == "":
	case *update:
		check(t, c.record(section, text))
	default:
		t.Errorf("%s is another one than what is recorded (-recorded +now):\n%s", section, d)
	}
}

// judgeTogether demands of one run over all policies and objects what was said
// about each case alone.
func (o *oracle) judgeTogether(t *testing.T, preview func(context.Context, []*oracleCase) (map[string]answer, error)) {
	var cases []*oracleCase
	for _, c := range o.chosen {
		if c.Operation == operationUpdate && c.User == "" && c.Apart == "" && len(c.refusals) == 0 {
			cases = append(cases, c)
		}
	}
	together, err := preview(t.Context(), cases)
	check(t, err)
	for _, c := range cases {
		for i, object := range c.live {
			a, ok := together[titleOf(object)]
			if !ok {
				a = answer{outcome: isUnchanged, object: object}
			}
			if d := c.predicted.answers[i].difference(a); d != "" {
				t.Errorf("%s: %s (-alone +together):\n%s", c.name, titleOf(object), d)
			}
		}
	}
}

// The operations of a case; on UPDATE its objects exist.
const (
	operationUpdate = "UPDATE"
	operationCreate = "CREATE"
)

// placeholder stands in the text of a case for the namespace that it gets.
const placeholder = "NAMESPACE"

const policyGroup = "admissionregistration.k8s.io"

// oracleCase is policies, objects, and what else there must be in the cluster.
type oracleCase struct {
	oracleSettings
	name                           string
	file                           string            // the case's own
	recorded                       map[string]string // the answers in it, by section
	policyText, worldText, objText string

	namespace  string
	namespaces []string                     // those that the policies are confined to
	policies   []*unstructured.Unstructured // with bindings
	world      []*unstructured.Unstructured
	objects    []*unstructured.Unstructured

	err       error
	existing  []*unstructured.Unstructured // the world as the server has it
	live      []*unstructured.Unstructured // the objects as the server has, or would have, them
	predicted prediction
	ours      []answer // what was predicted, with the server's defaults
	refusals  []string // of policies, by the server
}

// oracleSettings are the section settings.yaml of a case; all may be left out.
type oracleSettings struct {
	Operation string   `json:"operation"`
	User      string   `json:"user"` // sends the objects; the administrator otherwise
	Groups    []string `json:"groups"`
	// Differs says why kubectl-mutate does not answer as the server does, and Apart
	// why it does not answer the same when it is asked about all cases at once.
	Differs string `json:"differs"`
	Apart   string `json:"apart"`
}

// ownOracleCases reads testdata/oracle.
func ownOracleCases(t *testing.T) []*oracleCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "oracle", "*.txtar"))
	check(t, err)
	var cases []*oracleCase
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		check(t, err)
		c := &oracleCase{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), file: file, recorded: map[string]string{}}
		c.Operation = operationUpdate
		for _, f := range archive.Files {
			switch f.Name {
			case "settings.yaml":
				err = yaml.UnmarshalStrict(f.Data, &c.oracleSettings)
			case "policy.yaml":
				c.policyText = string(f.Data)
			case "world.yaml":
				c.worldText = string(f.Data)
			case "objects.yaml":
				c.objText = string(f.Data)
			case recordSection, differsSection:
				c.recorded[f.Name] = string(f.Data)
			default:
				err = errors.New("what is it for?")
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", file, f.Name, err)
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// What the server answers, and what kubectl-mutate does where that differs.
const (
	recordSection  = "answer.txt"
	differsSection = "differs.txt"
)

// record writes an answer into the case.
func (c *oracleCase) record(section, text string) error {
	archive, err := txtar.ParseFile(c.file)
	if err != nil {
		return err
	}
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == section })
	archive.Files = append(archive.Files, txtar.File{Name: section, Data: []byte(text)})
	return os.WriteFile(c.file, txtar.Format(archive), 0o644)
}

// place gives a case its namespace and reads its objects.
func (c *oracleCase) place(namespace string) error {
	c.namespace, c.User = namespace, strings.ReplaceAll(c.User, placeholder, namespace)
	for _, part := range []struct {
		text string
		into *[]*unstructured.Unstructured
	}{{c.policyText, &c.policies}, {c.worldText, &c.world}, {c.objText, &c.objects}} {
		objects, err := readManifests(strings.ReplaceAll(part.text, placeholder, namespace))
		if err != nil {
			return err
		}
		*part.into = append(*part.into, objects...)
	}
	if !slices.ContainsFunc(c.world, func(u *unstructured.Unstructured) bool { return isNamespace(u) && u.GetName() == namespace }) {
		own := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		own.SetName(namespace)
		c.world = append([]*unstructured.Unstructured{own}, c.world...)
	}
	for _, u := range slices.Concat(c.world, c.objects) {
		if isNamespace(u) {
			c.namespaces = append(c.namespaces, u.GetName())
		}
	}
	for _, u := range c.policies {
		c.confine(u)
	}
	return nil
}

// confine keeps policies from meeting those of other cases: it puts the
// namespace before their names, and has them match in the case's own namespaces.
// Of objects without a namespace the case itself has to see to it.
func (c *oracleCase) confine(u *unstructured.Unstructured) {
	u.SetName(c.namespace + "." + u.GetName())
	spec, _ := u.Object["spec"].(map[string]any)
	if name, ok := spec["policyName"].(string); ok {
		spec["policyName"] = c.namespace + "." + name
		return
	}
	constraints, ok := spec["matchConstraints"].(map[string]any)
	if !ok {
		return // the server has something to say about it
	}
	selector, _ := constraints["namespaceSelector"].(map[string]any)
	if selector == nil {
		selector = map[string]any{}
		constraints["namespaceSelector"] = selector
	}
	var names []any
	for _, n := range c.namespaces {
		names = append(names, n)
	}
	expressions, _ := selector["matchExpressions"].([]any)
	selector["matchExpressions"] = append(expressions, map[string]any{
		"key": "kubernetes.io/metadata.name", "operator": "In", "values": names,
	})
}

func isNamespace(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Namespace" && u.GetAPIVersion() == "v1"
}

// titleOf returns the kind, namespace and name of an object.
func titleOf(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName())
}

func readManifests(text string) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(u)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

// corpusOracleCases reads the cases of this language that were measured with
// another engine.
func corpusOracleCases(t *testing.T) []*oracleCase {
	t.Helper()
	all, err := corpus.Cases()
	check(t, err)
	var cases []*oracleCase
	for _, about := range all {
		if !slices.Equal(about.Dialects, []string{"admissionpolicy"}) {
			continue
		}
		c := &oracleCase{name: about.ID}
		c.Operation = about.Operation
		check(t, c.readCorpus(about.Files))
		cases = append(cases, c)
	}
	if skipped := corpus.NotRun(); skipped != "" {
		t.Log(skipped)
	}
	return cases
}

// readCorpus reads a case of the corpus, whose namespaces are any that its author
// thought of.
func (c *oracleCase) readCorpus(files corpus.Files) (err error) {
	c.policyText = string(files["policy.yaml"])
	namespaces := map[string]bool{placeholder: true}
	for name, into := range map[string]*string{"world.yaml": &c.worldText, "objects.yaml": &c.objText} {
		objects, err := readManifests(string(files[name]))
		if err != nil {
			return err
		}
		for _, u := range objects {
			if u.GetKind() == "Job" || u.GetKind() == "Service" {
				continue // the server gives them something that it refuses in a second one; TestConformance has its answer
			}
			if isNamespace(u) {
				u.SetName(corpusNamespace(u.GetName()))
				namespaces[u.GetName()] = true
			} else {
				u.SetNamespace(corpusNamespace(u.GetNamespace()))
			}
			if *into, err = appendManifest(*into, u); err != nil {
				return err
			}
		}
	}
	if err := c.readCorpusValues(files["values.yaml"], namespaces); err != nil {
		return err
	}
	objects, err := readManifests(c.objText)
	for _, u := range objects {
		if err == nil && !isNamespace(u) && !namespaces[u.GetNamespace()] {
			namespaces[u.GetNamespace()] = true
			err = c.addNamespace(u.GetNamespace(), nil)
		}
	}
	return err
}

func (c *oracleCase) addNamespace(name string, labels map[string]string) (err error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	u.SetLabels(labels)
	c.worldText, err = appendManifest(c.worldText, u)
	return err
}

// readCorpusValues makes Namespaces with the labels that values describe.
func (c *oracleCase) readCorpusValues(text []byte, namespaces map[string]bool) error {
	var values struct {
		NamespaceSelector []struct {
			Name   string
			Labels map[string]string
		} `json:"namespaceSelector"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return err
	}
	for _, n := range values.NamespaceSelector {
		name := corpusNamespace(n.Name)
		namespaces[name] = true
		if err := c.addNamespace(name, n.Labels); err != nil {
			return err
		}
	}
	return nil
}

func corpusNamespace(name string) string {
	if name == "" || name == "default" {
		return placeholder
	}
	return placeholder + "-" + name
}

func appendManifest(text string, u *unstructured.Unstructured) (string, error) {
	out, err := yaml.Marshal(u.Object)
	return text + "---\n" + string(out), err
}

// answer is what policies make of one object.
type answer struct {
	outcome string
	object  *unstructured.Unstructured // as it would be; of the first two outcomes
	message string                     // of all others
}

// The outcomes.
const (
	isChanged   = "changed"
	isUnchanged = "unchanged"
	isDenied    = "denied"  // by a policy
	isRefused   = "refused" // by the server, for another reason
)

// verdictOn returns what the server made of an object.
func verdictOn(before, after *unstructured.Unstructured) answer {
	if cmp.Equal(comparableForm(before), comparableForm(after)) {
		return answer{outcome: isUnchanged, object: after}
	}
	return answer{outcome: isChanged, object: after}
}

// comparableForm returns an object without what every request changes or sets.
func comparableForm(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	u = u.DeepCopy()
	for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", name)
	}
	return u.Object
}

// difference compares the server's answer with another one; it is empty where
// they are the same.
func (a answer) difference(b answer) string {
	if a.outcome != b.outcome || (a.outcome == isDenied && !strings.Contains(b.message, a.reason())) {
		return fmt.Sprintf("-%s %s\n+%s %s", a.outcome, a.message, b.outcome, b.message)
	}
	theirs, ours := comparableForm(a.object), comparableForm(b.object)
	delete(theirs, "apiVersion") // either may be asked in another version than the other
	delete(ours, "apiVersion")
	return cmp.Diff(theirs, ours)
}

// reason is why a policy denies an object, in the words of kubectl-mutate where
// they are others than the server's.
func (a answer) reason() string {
	for theirs, ours := range map[string]string{
		"no params found for policy binding with `Deny` parameterNotFoundAction": "parameterNotFoundAction is Deny",
		"failed to find resource referenced by paramKind":                        "is not known",
		"actual cost limit exceeded":                                             "it reached the limit of 1000000 units of CEL cost",
		"got &{NULL_VALUE}":                                                      "null is nothing that an Object can hold",
		"got structpb.NullValue":                                                 "null is nothing that an Object can hold",
		"got &value.valueUnstructured{Value:0}":                                  "null is nothing that an Object can hold",
		"got &value.valueUnstructured{Value:[]uint8{":                            "a bytes is nothing that an object can hold",
	} {
		if strings.Contains(a.message, theirs) {
			return ours
		}
	}
	reason := a.message
	for _, who := range []string{"denied request: ", "Internal error occurred: ", "error applying patch: ", "to typed object: ", "resulted in error: ", "fails to evaluate: "} {
		if _, what, ok := strings.Cut(reason, who); ok {
			reason = what
		}
	}
	return reason
}

// text is an answer for people: what would change, or what is wrong.
func (a answer) text(before *unstructured.Unstructured) string {
	if a.outcome != isChanged {
		return strings.TrimSuffix(a.outcome+": "+a.message, ": ")
	}
	var b strings.Builder
	b.WriteString(isChanged)
	for _, f := range diff.Compare(comparableForm(before), comparableForm(a.object), diff.Type{}) {
		path := engine.PathString(f.Path)
		switch f.Kind {
		case engine.Added:
			fmt.Fprintf(&b, "\n  + %s: %s", path, compact(f.To))
		case engine.Removed:
			fmt.Fprintf(&b, "\n  - %s: %s", path, compact(f.From))
		default:
			fmt.Fprintf(&b, "\n  %s %s: %s -> %s", f.Kind, path, compact(f.From), compact(f.To))
		}
	}
	return b.String()
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// describe returns the answers to a case as text, so that they can be recorded: without
// what is only so in this run.
func (c *oracleCase) describe(refusals []string, answers []answer) string {
	var b strings.Builder
	for _, r := range refusals {
		fmt.Fprintf(&b, "%s\n", r)
	}
	for i, object := range c.live {
		fmt.Fprintf(&b, "%s %s: %s\n", object.GetKind(), object.GetName(), answers[i].text(object))
	}
	text := strings.NewReplacer(c.namespace+".", "", c.namespace, placeholder).Replace(b.String())
	return unsettled.ReplaceAllString(text, "...")
}

// unsettled is what no two runs have in common.
var unsettled = regexp.MustCompile(`https://[^/]*|stream ID \d+|0x[0-9a-f]{6,}`)
