package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// recordings is where the cases are kept that pkg/plugin/write/request replays without
// a server.
var recordings = filepath.Join("..", "..", "pkg", "plugin", "write", "request", "testdata")

func asStatus(err error, status *apierrors.APIStatus) bool { return errors.As(err, status) }

// recording is one case, as it is kept. What differs from run to run (uids,
// resourceVersions, times) is replaced before the plan is made anew, so that
// only a change of behaviour changes a recording.
type recording struct {
	name, subresource string
	files             []txtar.File
	writes            int
}

// add records one write: the two states, the request, and the dry run's answer.
func (rec *recording) add(t *testing.T, w *writePath, after *unstructured.Unstructured, r write.Result) {
	t.Helper()
	if !*update || r.Before == nil || after == nil {
		return
	}
	rec.writes++
	live, wanted := anonymous(r.Before), anonymous(after)
	in := request.Input{Live: live, After: wanted, Subresource: rec.subresource, Manager: manager}
	known := w.known[live.GroupVersionKind()]
	in.Types = known.types
	plan := request.Plan
	if r.Reason.Kind == request.ApplyRefused || r.Reason.Kind == request.ApplyLoses {
		plan = func(in request.Input) (request.Request, error) { return request.PlanJSONPatch(in, r.Reason) }
	}
	request, err := plan(in)
	if err != nil {
		t.Fatal(err)
	}
	rec.file("schema", schemaOf(t, live.GroupVersionKind(), known.text)+"\n")
	rec.file("live.yaml", asYAML(t, withoutOwners(live)))
	rec.file("owners.jsonl", ownersOf(t, live))
	rec.file("change.jsonl", operationLines(t, withoutOwners(live), withoutOwners(wanted)))
	rec.file("request", fmt.Sprintf("%s %s\n%s\n", request.Method, request.Reason.Kind, request.Body))
	if w.answer == nil || r.Method != request.Method {
		return
	}
	answer := anonymous(w.answer)
	rec.file("answer.jsonl", operationLines(t, request.Want.Object, withoutOwners(answer)))
	rec.file("answer-owners.jsonl", ownersOf(t, answer))
	rec.file("verdict", verdictOf(t, request, answer))
}

func (rec *recording) file(name, text string) {
	rec.files = append(rec.files, txtar.File{Name: fmt.Sprintf("%d/%s", rec.writes, name), Data: []byte(text)})
}

var notInFileNames = regexp.MustCompile(`[^a-z0-9]+`)

func (rec *recording) save(t *testing.T) {
	t.Helper()
	comment := rec.name + "\n"
	if rec.subresource != "" {
		comment += "subresource: " + rec.subresource + "\n"
	}
	name := strings.Trim(notInFileNames.ReplaceAllString(strings.ToLower(rec.name), "-"), "-") + ".txtar"
	text := txtar.Format(&txtar.Archive{Comment: []byte(comment), Files: rec.files})
	if err := os.WriteFile(filepath.Join(recordings, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// anonymous is a copy without what no two runs share.
func anonymous(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetUID("00000000-0000-0000-0000-000000000001")
	object.SetResourceVersion("1")
	if object.GetNamespace() != "" {
		object.SetNamespace("t")
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	switch object.GetKind() {
	case "Namespace":
		object.SetName("t")
		setIfThere(object.Object, "t", "metadata", "labels", "kubernetes.io/metadata.name")
	case "Service":
		setIfThere(object.Object, "10.96.0.9", "spec", "clusterIP")
		setIfThere(object.Object, []any{"10.96.0.9"}, "spec", "clusterIPs")
		ports, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "ports")
		for i, port := range ports.([]any) {
			setIfThere(port.(map[string]any), int64(30000+i), "nodePort")
		}
	}
	entries := object.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	// The server sorts by time, which is the same for some and not for others.
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(strings.Compare(a.Manager, b.Manager), strings.Compare(string(a.Operation), string(b.Operation)))
	})
	if len(entries) > 0 {
		object.SetManagedFields(entries)
	}
	return object
}

func setIfThere(object map[string]any, v any, path ...string) {
	if _, ok, err := unstructured.NestedFieldNoCopy(object, path...); ok && err == nil {
		_ = unstructured.SetNestedField(object, v, path...) // just seen to be there
	}
}

func withoutOwners(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	metadata := maps.Clone(fields["metadata"].(map[string]any))
	for _, f := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, f)
	}
	fields["metadata"] = metadata
	return fields
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func ownersOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	return jsonLines(t, object.GetManagedFields())
}

func operationLines(t *testing.T, from, to map[string]any) string {
	t.Helper()
	return jsonLines(t, diff.Edits(from, to))
}

func jsonLines[T any](t *testing.T, values []T) string {
	t.Helper()
	var b strings.Builder
	for _, v := range values {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}

// verdictOf is what the plugin reads from an answer, a line per finding.
func verdictOf(t *testing.T, planned request.Request, answer *unstructured.Unstructured) string {
	t.Helper()
	said := request.Classify(planned, answer)
	takeovers, err := request.Takeovers(planned, answer)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if said.Unchanged {
		b.WriteString("unchanged\n")
	}
	for _, f := range said.Difference {
		fmt.Fprintf(&b, "%s %s\n", f.Class, f.Path)
	}
	for _, o := range takeovers {
		fmt.Fprintf(&b, "%s %s\n", o.Verdict, o)
	}
	return b.String()
}

// schemaOf names the schema of a recording: "built-in", or a file with the part
// of the OpenAPI document that is about the kind.
func schemaOf(t *testing.T, gvk schema.GroupVersionKind, text []byte) string {
	t.Helper()
	if gvk.Group != testGroup {
		return "built-in"
	}
	var d struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	kept := map[string]any{}
	for name, s := range d.Components.Schemas {
		if isKind(s, gvk) {
			keep(kept, d.Components.Schemas, name)
		}
	}
	small, err := json.MarshalIndent(map[string]any{"components": map[string]any{"schemas": kept}}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	hash := fnv.New32a()
	_, _ = hash.Write(small) // never fails
	name := fmt.Sprintf("openapi/%s-%s-%08x.json", strings.ToLower(gvk.Kind), gvk.Version, hash.Sum32())
	if err := os.WriteFile(filepath.Join(recordings, name), append(small, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func isKind(s map[string]any, gvk schema.GroupVersionKind) bool {
	kinds, _ := s["x-kubernetes-group-version-kind"].([]any)
	for _, k := range kinds {
		m, ok := k.(map[string]any)
		if ok && m["group"] == gvk.Group && m["version"] == gvk.Version && m["kind"] == gvk.Kind {
			return true
		}
	}
	return false
}

// keep takes over a schema, without its words, and those that it refers to.
func keep(kept map[string]any, all map[string]map[string]any, name string) {
	if _, ok := kept[name]; ok {
		return
	}
	s := all[name]
	kept[name] = s
	delete(s, "description")
	eachReference(s, func(ref string) { keep(kept, all, ref) })
}

func eachReference(v any, f func(name string)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			eachReference(x, f)
		}
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		if ref, ok := v["$ref"].(string); ok {
			f(strings.TrimPrefix(ref, "#/components/schemas/"))
		}
		for _, x := range v {
			eachReference(x, f)
		}
	}
}

// writePathServer is the plugin's own client of the server. It also shows what
// it is asked, and lets a test hold on to an old schema.
type writePathServer struct {
	config  *rest.Config
	plugin  *cluster.Client
	client  dynamic.Interface // of the other users
	openapi openapi.Client
	known   map[schema.GroupVersionKind]knownSchema
	answer  *unstructured.Unstructured // to the last dry run
	// unforced says whom the server itself names when the last apply is rehearsed
	// without force: the causes of its 409.
	unforced []string
}

// knownSchema is what the writer knows of a kind, and the document that says so.
type knownSchema struct {
	types managedfields.TypeConverter
	text  []byte // only of the test's own kinds
}

func newWritePathServer(t *testing.T) *writePathServer {
	t.Helper()
	config := restConfig(t)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	check(t, err)
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	check(t, err)
	s := &writePathServer{config: config, client: client, openapi: disco.OpenAPIV3(), known: map[schema.GroupVersionKind]knownSchema{}}
	check(t, s.connect())
	return s
}

// connect is what a new run of the plugin does: nothing is known of the server.
func (s *writePathServer) connect() error {
	disco, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		return err
	}
	cached := memory.NewMemCacheClient(disco)
	flags := genericclioptions.NewTestConfigFlags().
		WithClientConfig(clientcmd.NewDefaultClientConfig(*server.config.DeepCopy(), nil)).
		WithDiscoveryClient(cached).
		WithRESTMapper(restmapper.NewDeferredDiscoveryRESTMapper(cached))
	const noLimit = 10_000
	s.plugin, err = cluster.New(flags, cluster.Options{QPS: noLimit, Burst: noLimit})
	s.forget()
	return err
}

func (s *writePathServer) resource(key engine.ObjectKey) dynamic.ResourceInterface {
	plural := strings.ToLower(key.Kind) + "s"
	switch key.Kind {
	case "Ingress":
		plural = "ingresses"
	case "NetworkPolicy":
		plural = "networkpolicies"
	case "MutatingAdmissionPolicy":
		plural = "mutatingadmissionpolicies"
	}
	r := s.client.Resource(schema.GroupVersionResource{Group: key.Group, Version: key.Version, Resource: plural})
	if key.Namespace == "" {
		return r
	}
	return r.Namespace(key.Namespace)
}

func subresources(key engine.ObjectKey) []string {
	if key.Subresource == "" {
		return nil
	}
	return []string{key.Subresource}
}

// Get implements write.Server.
func (s *writePathServer) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	return s.plugin.Get(ctx, key)
}

// Patch implements write.Server.
func (s *writePathServer) Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	if !p.DryRun {
		return s.plugin.Patch(ctx, key, p)
	}
	if p.Force {
		unforced := p
		unforced.Force = false
		_, err := s.plugin.Patch(ctx, key, unforced)
		s.unforced = conflictCauses(err)
	}
	answer, err := s.plugin.Patch(ctx, key, p)
	s.answer = answer
	return answer, err
}

// Types implements write.Server.
func (s *writePathServer) Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (managedfields.TypeConverter, error) {
	if k, ok := s.known[gvk]; ok && !refresh {
		return k.types, nil
	}
	var k knownSchema
	var err error
	if k.types, err = s.plugin.Types(ctx, gvk, true); err != nil {
		return nil, err
	}
	if gvk.Group == testGroup {
		k.text, err = s.document(gvk.GroupVersion())
	}
	s.known[gvk] = k
	return k.types, err
}

func (s *writePathServer) document(gv schema.GroupVersion) ([]byte, error) {
	paths, err := s.openapi.Paths()
	if err != nil {
		return nil, err
	}
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	path, ok := paths[name]
	if !ok {
		return nil, fmt.Errorf("the server publishes no %s", name)
	}
	return path.Schema("application/json")
}

// forget drops what is known of the test's own schemas.
func (s *writePathServer) forget() {
	for gvk := range s.known {
		if gvk.Group == testGroup {
			delete(s.known, gvk)
		}
	}
}

// awaitSchema waits until the published schema of the test's group is another
// than before and knows the kind. It is published shortly after the
// CustomResourceDefinition is stored, and served shortly after that.
func (s *writePathServer) awaitSchema(kind string, before []byte) error {
	const settle = 500 * time.Millisecond
	for range 200 {
		now, err := s.document(schema.GroupVersion{Group: testGroup, Version: "v1"})
		if err == nil && bytes.Contains(now, []byte(`"`+kind+`"`)) && !bytes.Equal(now, before) {
			time.Sleep(settle)
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the schema of " + kind + " was not published")
}

// create stores manifests under a manager's name.
func (s *writePathServer) create(ctx context.Context, manager string, manifests ...string) error {
	for _, m := range manifests {
		object, err := parse(m)
		if err != nil {
			return err
		}
		if _, err := s.resource(engine.KeyOf(object)).Create(ctx, object, metav1.CreateOptions{FieldManager: manager}); err != nil {
			return err
		}
	}
	return nil
}

// applyAs is what a GitOps controller does.
func (s *writePathServer) applyAs(ctx context.Context, manager, manifest string, force bool) error {
	object, err := parse(manifest)
	if err != nil {
		return err
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = s.resource(engine.KeyOf(object)).Patch(ctx, object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}

// patchAs is what another user does.
func (s *writePathServer) patchAs(ctx context.Context, manager string, key engine.ObjectKey, t types.PatchType, body string) error {
	_, err := s.resource(key).Patch(ctx, key.Name, t, []byte(body), metav1.PatchOptions{FieldManager: manager}, subresources(key)...)
	return err
}

func parse(manifest string) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(text)
}
