package test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// suite is a test with everything that it names.
type suite struct {
	*document
	options  *evaluate.Options
	policies []engine.Document
	inputs   []engine.Document // of the policies
	other    []engine.Document // next to the policies, of kinds that do not mutate
	objects  *snapshot.Snapshot
	named    []engine.ObjectKey // the objects and the targets
	broken   map[string]bool    // names of policies that do not compile
	programs []engine.Program
	patched  map[string][]engine.Document // the wanted objects, by file
	request  engine.Request
	errs     []error
	values   []engine.Document
	with     *standIns // nil without --with
}

// files reads the documents of files that a test names, and collects errors, also for duplicates.
func (s *suite) files(ctx context.Context, places []place, implied string) (out []engine.Document) {
	first := map[engine.ObjectKey]string{}
	for _, p := range places {
		if isURL(p.text) {
			s.errs = append(s.errs, p.errorf("%s is a URL, and a test reads files only: download it, and name the file", p.text))
			continue
		}
		path := p.text
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.dir, path)
		}
		reader := &input.Reader{}
		for d, err := range reader.Read(ctx,
			input.Files{Paths: []string{path}, Recursive: true, Lines: true, APIVersion: apiVersion, Kind: implied}) {
			var unread *input.Error
			switch {
			case errors.As(err, &unread) && unread.Line == 0:
				s.errs = append(s.errs, p.errorf("%s: %w", p.text, unread.Err))
				continue
			case err != nil:
				s.errs = append(s.errs, err)
				continue
			}
			key := d.Key.Named()
			if before := first[key]; before != "" && key.Name != "" {
				s.report(fmt.Errorf("%s: %s is there twice: it is at %s already", d.Origin, d.Key, before))
				continue
			}
			first[key] = d.Origin
			out = append(out, d)
		}
	}
	return out
}

// file reads a file with one document of a kind of Kyverno's command; nil without a path.
func (s *suite) file(ctx context.Context, p place, want string) *engine.Document {
	if p.text == "" {
		return nil
	}
	before := len(s.errs)
	documents := s.files(ctx, []place{p}, want)
	switch {
	case len(s.errs) > before:
		return nil
	case len(documents) != 1 || strings.TrimSuffix(documents[0].Key.Kind, "s") != strings.TrimSuffix(want, "s"):
		s.errs = append(s.errs, p.errorf("%s has to hold one document of kind %s", p.text, want))
		return nil
	}
	documents[0].Object().SetKind(want)
	d := engine.NewDocument(documents[0].Object(), documents[0].Origin)
	d.Line = documents[0].Line
	return &d
}

// open reads the policies of a test.
func open(ctx context.Context, t *document, o *evaluate.Options, with *standIns) *suite {
	o.Annotate = false // Kyverno's command does not
	s := &suite{
		document: t, options: o, with: with, broken: map[string]bool{},
		patched: map[string][]engine.Document{},
	}
	for _, d := range s.files(ctx, t.policies, "") {
		switch engine.RoleOf(d.Key.GroupKind, o.Dialects) {
		case engine.Policy:
			s.policies = append(s.policies, d)
		case engine.Input:
			s.inputs = append(s.inputs, d)
		case engine.Foreign:
			s.other = append(s.other, d)
		}
	}
	return s
}

// load reads everything else that a test names, and compiles the policies. Errors are in errs; objects is
// nil if nothing can be run.
func (s *suite) load(ctx context.Context) {
	t, o := s.document, s.options
	s.inputs = append(s.inputs, s.files(ctx, t.exceptions, "")...)
	params := s.files(ctx, t.params, "")
	s.inputs = append(s.inputs, params...)
	resources, targets := s.files(ctx, t.resources, ""), s.files(ctx, t.targets, "")
	world := slices.Concat(s.other, s.inputs, targets, s.clusterObjects(ctx), s.bindings(ctx))
	s.readValues(ctx)
	for _, dialect := range o.Dialects {
		if supplier, ok := dialect.(engine.Supplier); ok {
			for _, d := range s.values {
				world = append(world, engine.Documents(supplier.Supplied(d)...)...)
			}
		}
	}
	for _, r := range t.results {
		if p := r.patched; p.text != "" && s.patched[p.text] == nil && s.notOurs(r) == "" {
			s.patched[p.text] = s.files(ctx, []place{p}, "")
		}
	}
	if len(s.errs) > 0 {
		return
	}
	var err error
	if s.objects, err = snapshot.Load(resources, snapshot.Options{World: world, AsWritten: true}); err != nil {
		s.errs = append(s.errs, err)
		return
	}
	given := map[engine.ObjectKey]bool{}
	for _, d := range slices.Concat(resources, targets) {
		given[d.Key.Named()] = true
	}
	for _, d := range s.objects.Documents() {
		key := d.Key.Named()
		bare := key
		bare.Namespace = ""
		if given[key] || key.Namespace == defaultNamespace && given[bare] {
			s.named = append(s.named, d.Key)
		}
	}
	o.World.Reader, o.World.Raw, o.World.Document, o.World.Mapper = s.objects, s.objects, s.objects.Document,
		s.objects.Mapper()
	s.programs = s.compile(s.values)
}

// defaultNamespace is the namespace of objects in files that name none.
const defaultNamespace = "default"

// languages are in the order in which Kyverno's command evaluates policies; languages that it does not know
// follow.
//
//nolint:gochecknoglobals // an immutable table
var languages = []string{"kyverno", "admissionpolicy", "mutatingpolicy"}

// compile compiles the policies one by one, in the order of Kyverno's command; Gatekeeper's together, since
// they are evaluated until nothing changes.
func (s *suite) compile(values []engine.Document) (out []engine.Program) {
	var sets [][]engine.Document
	inputs := slices.Concat(s.inputs, values)
	left := slices.Clone(s.policies)
	if s.with != nil {
		left = nil
		for _, d := range s.policies {
			for _, stand := range s.with.of(d) {
				if !isOneOf(left, refOf(stand)) {
					left = append(left, stand)
				}
			}
		}
		inputs = append(inputs, s.with.inputs...)
	}
	for _, name := range languages {
		i := slices.IndexFunc(s.options.Dialects, func(d engine.Dialect) bool { return d.Name() == name })
		left = slices.DeleteFunc(left, func(d engine.Document) bool {
			mine := s.options.Dialects[i].Accepts(d.Key.GroupKind) == engine.Policy
			if mine {
				sets = append(sets, []engine.Document{d})
			}
			return mine
		})
	}
	if len(left) > 0 {
		sets = append(sets, left)
	}
	for _, set := range sets {
		p := s.options.Policies
		p.Documents, p.Warn = slices.Concat(set, inputs), func(engine.CompileError) {}
		programs, err := p.Compile(func(err error) {
			for _, d := range set {
				s.broken[d.Key.Name] = true
			}
			s.report(err)
		}, func(int) {})
		if err != nil {
			s.report(err)
		}
		out = append(out, programs...)
	}
	return out
}

// report adds an error, once.
func (s *suite) report(err error) {
	if !slices.ContainsFunc(s.errs, func(known error) bool { return known.Error() == err.Error() }) {
		s.errs = append(s.errs, err)
	}
}

// readValues reads the values of the test; its own override those of a file.
func (s *suite) readValues(ctx context.Context) {
	fields := s.document.values
	if entries, ok := fields["globalContextEntries"].([]any); ok {
		fields["globalContextEntries"] = s.entries(ctx, entries)
	}
	file := s.file(ctx, s.variables, "Values")
	if file != nil && s.Field("values") == nil {
		s.values = append(s.values, *file)
	}
	if len(fields) > 0 {
		object := maps.Clone(fields)
		object["apiVersion"], object["kind"] = apiVersion, "Values"
		d := engine.NewDocument(&unstructured.Unstructured{Object: object}, s.Origin)
		d.Line = func(field string) int {
			if first, _, _ := strings.Cut(field, "."); s.Line == nil || strings.HasPrefix(first, "apiCall") ||
				strings.HasPrefix(first, "globalContext") {
				return s.lineOf(field)
			}
			return s.lineOf("values." + field)
		}
		s.values = append(s.values, d)
	}
	s.request = engine.Request{Operation: engine.OperationCreate, User: s.request.User}
	for _, d := range s.values {
		global, _ := d.Field("globalValues").(map[string]any)
		switch operation, _ := global[operationValue].(string); operation {
		case "":
		case string(engine.OperationUpdate), string(engine.OperationDelete), string(engine.OperationCreate):
			s.request.Operation = engine.Operation(operation)
		case "CONNECT": // Kyverno's command does not simulate it either
		default:
			s.errs = append(s.errs, fmt.Errorf("%s: globalValues: %s must be CREATE, UPDATE, DELETE or CONNECT, not %q", d.Origin, operationValue, operation))
		}
	}
}

const operationValue = "request.operation"

func (s *suite) lineOf(field string) int {
	if s.Line == nil {
		return 0
	}
	return s.Line(field)
}

// entries returns the entries of a global context, with their listed objects or files as data.
func (s *suite) entries(ctx context.Context, entries []any) []any {
	out := slices.Clone(entries)
	for i := range out {
		entry, ok := out[i].(map[string]any)
		if !ok || entry["data"] != nil {
			continue
		}
		entry = maps.Clone(entry)
		if entry["resources"] != nil {
			entry["data"] = entry["resources"]
		}
		if paths, ok := entry["resourceFiles"].([]any); ok {
			node := policydecode.Node{
				Report: &policydecode.Report{Origin: s.Origin, Line: s.Line, Policy: kind},
				Path:   fmt.Sprintf("globalContextEntries[%d].resourceFiles", i), Value: paths,
			}
			var data []any
			for _, n := range node.List() {
				for _, d := range s.files(ctx, []place{{n.Text(), n}}, "") {
					data = append(data, d.Object().Object)
				}
			}
			entry["data"] = data
		}
		delete(entry, "resources")
		delete(entry, "resourceFiles")
		out[i] = entry
	}
	return out
}

// clusterObjects returns the objects besides those of the test, in the files for them.
func (s *suite) clusterObjects(ctx context.Context) (out []engine.Document) {
	add := func(d *engine.Document) {
		if d == nil {
			return
		}
		report := &policydecode.Report{Origin: d.Origin, Line: d.Line, Policy: d.Key.Kind}
		spec := policydecode.Node{Report: report, Value: d.Object().Object}.Fields().At("spec").Fields()
		for _, n := range spec.At("crds").List() {
			out = append(out, s.files(ctx, []place{{n.Text(), n}}, "")...)
		}
		for _, n := range spec.At("resources").List() {
			object, _ := n.Value.(map[string]any)
			out = append(out, engine.NewDocument(&unstructured.Unstructured{Object: object}, d.Origin))
		}
		s.errs = append(s.errs, report.Errs...)
	}
	for _, p := range s.cluster {
		add(s.file(ctx, p, "ClusterResource"))
	}
	add(s.file(ctx, s.context, "Context"))
	return out
}

// bindings sets the user of the request, and returns the bindings of its roles.
func (s *suite) bindings(ctx context.Context) (out []engine.Document) {
	d := s.file(ctx, s.user, "UserInfo")
	if d == nil {
		return nil
	}
	report := &policydecode.Report{
		Origin: d.Origin, Line: d.Line, Policy: d.Key.Kind,
		Warn: func(e engine.CompileError) { s.errs = append(s.errs, &e) },
	}
	f := policydecode.Node{Report: report, Value: d.Object().Object}.Fields()
	user := f.At("userInfo").Fields()
	s.request.User = engine.UserInfo{Username: user.At("username").Text(), Groups: user.At("groups").Texts()}
	user.Accept("uid", "extra")
	user.Done()
	if s.request.User.Username == "" && (f.Has("roles") || f.Has("clusterRoles")) {
		s.request.User.Username = "user of the test"
	}
	bind := func(kind, namespace, role string) {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding",
			"metadata": map[string]any{"name": "test:" + role},
			"roleRef":  map[string]any{"kind": kind, "name": role},
			"subjects": []any{map[string]any{"kind": "User", "name": s.request.User.Username}},
		}}
		object.SetNamespace(namespace)
		out = append(out, engine.NewDocument(object, d.Origin))
	}
	for _, n := range f.At("roles").List() {
		namespace, name, found := strings.Cut(n.Text(), ":")
		if !found {
			n.Fail("must be NAMESPACE:NAME, not %q", n.Text())
		}
		bind("Role", namespace, name)
	}
	for _, n := range f.At("clusterRoles").List() {
		bind("ClusterRole", "", n.Text())
	}
	f.DoneObject()
	s.errs = append(s.errs, report.Errs...)
	return out
}
