package test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// The type of a test, as Kyverno's command reads it (cmd/cli/kubectl-kyverno/apis/v1alpha1 of 1.19).
const (
	group      = "cli.kyverno.io"
	apiVersion = group + "/v1alpha1"
	kind       = "Test"
)

// defaultName is the name of the files that Kyverno's command looks for.
const defaultName = "kyverno-test.yaml"

// place is a string of a test, such as a path, and its position.
type place struct {
	text string
	node policydecode.Node
}

// errorf returns an error about it.
func (p place) errorf(format string, args ...any) error {
	e := p.node.Error(fmt.Errorf(format, args...))
	return &e
}

// document is one test of a file.
type document struct {
	engine.Document
	dir  string // of the file
	name string

	policies, resources, targets, params, exceptions, cluster []place
	variables, user, context                                  place
	values                                                    map[string]any // the fields of a Values document
	results                                                   []*result
	checks                                                    *place
}

// result is a test's expectation of a rule on some objects.
type result struct {
	node               policydecode.Node
	policy, rule, kind string
	want               string
	operation          engine.Operation // empty for the test's own
	names              []place          // NAME or NAMESPACE/NAME
	specs              []spec
	patched            place  // the file of the wanted objects; may be empty
	mustHave           bool   // a missing wanted object is a failure
	other              string // why it is not for a rule that mutates; empty if it may be
}

// spec names one object.
type spec struct {
	place
	group, version, kind, namespace string
}

// origin returns FILE:LINE of the result.
func (r *result) origin() string { e := r.node.Error(nil); return e.Place() }

// ref returns the rule as the result names it.
func (r *result) ref() engine.RuleRef { return engine.RuleRef{Policy: r.policy, Rule: r.rule} }

// find returns the files of tests below the paths, which may be files themselves. It joins the errors of
// unreadable paths.
func find(paths []string, name string) ([]string, error) {
	var out []string
	var errs []error
	names := []string{name}
	if name == defaultName {
		names = append(names, strings.TrimSuffix(name, ".yaml")+".yml")
	}
	for _, path := range paths {
		if isURL(path) {
			errs = append(errs, fmt.Errorf("%s is a URL, and tests are read from files: clone the repository, and name its directory", path))
			continue
		}
		err := filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == ".git":
				return filepath.SkipDir
			case !d.IsDir() && (at == path || slices.Contains(names, d.Name())) && !slices.Contains(out, at):
				out = append(out, at)
			}
			return nil
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func isURL(path string) bool {
	return strings.Contains(path, "://") || strings.HasPrefix(path, "git@")
}

// read reads the tests of a file. Errs has an error for each invalid part.
func read(ctx context.Context, path string) (out []*document, errs []error) {
	reader := &input.Reader{}
	for d, err := range reader.Read(ctx,
		input.Files{Paths: []string{path}, Lines: true, APIVersion: apiVersion, Kind: kind}) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if d.Key.Kind != kind || !strings.HasSuffix(d.Key.Group, "kyverno.io") { // Kyverno's command takes any
			errs = append(errs, fmt.Errorf("%s: %s of %s is not a %s of %s", d.Origin, d.Key.Kind,
				d.Key.GroupVersionKind().GroupVersion(), kind, group))
			continue
		}
		t, found := decode(d, filepath.Dir(path))
		if len(found) > 0 {
			errs = append(errs, found...)
			continue
		}
		out = append(out, t)
	}
	if len(out)+len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s: there is no test in it", path))
	}
	return out, errs
}

// decoder reads the fields of a mapping.
type decoder struct{ *policydecode.Fields }

// decode reads a test of either form: a result of the older one names one object and one wanted object.
func decode(d engine.Document, dir string) (*document, []error) {
	var errs []error
	report := &policydecode.Report{
		Origin: d.Origin, Line: d.Line, Policy: kind, Warn: func(e engine.CompileError) { errs = append(errs, &e) },
	}
	f := decoder{policydecode.Node{Report: report, Value: d.Object().Object}.Fields()}
	t := &document{
		Document: d, dir: dir, name: cmp.Or(f.At("name").Text(), d.Key.Name),
		policies: f.places("policies"), resources: f.places("resources"), targets: f.places("targetResources"),
		params: f.places("paramResources"), exceptions: f.places("exceptions"),
		cluster:   f.places("clusterResources"),
		variables: f.place("variables"), user: f.place("userinfo"), context: f.place("context"),
		values: map[string]any{},
	}
	if t.name != "" {
		report.Policy += " " + t.name
	}
	maps.Copy(t.values, f.At("values").Fields().Values)
	for _, name := range []string{"apiCallResponses", "globalContextEntries"} {
		if value := f.At(name).Value; value != nil {
			t.values[name] = value
		}
	}
	f.Accept("jsonPayload", "jsonPayloads", "httpPayloads", "envoyPayloads") // for policies that do not mutate
	if n := f.At("checks"); len(n.List()) > 0 {
		t.checks = &place{node: n}
	}
	for _, n := range f.At("results").List() {
		t.results = append(t.results, decodeResult(n))
	}
	if len(t.policies) == 0 {
		f.At("policies").Fail("is missing, so there is nothing to test")
	}
	f.DoneObject()
	return t, append(report.Errs, errs...)
}

// otherKinds has the fields that say that a result is for policies that do not mutate.
//
//nolint:gochecknoglobals // an immutable table
var otherKinds = map[string]string{
	"isValidatingAdmissionPolicy": "a ValidatingAdmissionPolicy", "isValidatingPolicy": "a ValidatingPolicy",
	"isDeletingPolicy":        "a DeletingPolicy",
	"isImageValidatingPolicy": "an ImageValidatingPolicy", "isGeneratingPolicy": "a GeneratingPolicy",
}

func decodeResult(n policydecode.Node) *result {
	f := decoder{n.Fields()}
	r := &result{
		node: n, policy: f.At("policy").Required(), rule: f.At("rule").Text(),
		kind: f.At("kind").Text(),
	}
	wants := []string{"pass", "skip", "fail", "error", "warn"}
	switch r.want = cmp.Or(f.At("result").Text(), f.At("status").Text()); {
	case r.want == "":
		f.At("result").Fail("is missing: use %s", strings.Join(wants, ", "))
	default:
		if !slices.Contains(wants, r.want) {
			f.At("result").Fail("must be one of %s, not %q", strings.Join(wants, ", "), r.want)
		}
	}
	switch r.operation = engine.Operation(f.At("operation").Text()); r.operation {
	case "", engine.OperationCreate, engine.OperationUpdate, engine.OperationDelete:
	default:
		f.At("operation").Fail("must be CREATE, UPDATE or DELETE, not %q", r.operation)
	}
	for _, name := range slices.Sorted(maps.Keys(otherKinds)) {
		if f.At(name).Bool() {
			r.other = "it is for " + otherKinds[name]
		}
	}
	for _, name := range []string{"generatedResource", "generatedResources", "cloneSourceResource"} {
		if f.Has(name) {
			r.other = "it is for a rule that generates"
		}
	}
	r.mustHave = f.At("failOnMissingResources").Bool()
	r.names = f.places("resources")
	if one := f.place("resource"); one.text != "" {
		if namespace := f.At("namespace").Text(); namespace != "" {
			one.text = namespace + "/" + one.text
		}
		r.names = append(r.names, one)
	}
	for _, n := range f.At("resourceSpecs").List() {
		s := n.Fields()
		r.specs = append(r.specs,
			spec{
				place{s.At("name").Text(), n},
				s.At("group").Text(), s.At("version").Text(), s.At("kind").Text(),
				s.At("namespace").Text(),
			})
		if s.At("subresource").Text() != "" {
			r.other = "it is about a subresource, and objects of files are no requests to one"
		}
		s.Done()
	}
	if r.patched = f.place("patchedResources"); r.patched.text == "" {
		r.patched = f.place("patchedResource")
	}
	// the policy itself says this
	f.Accept("namespace", "autogeneratedRule", "isMutatingPolicy", "isMutatingAdmissionPolicy")
	f.Done()
	return r
}

func (d decoder) place(key string) place {
	n := d.At(key)
	return place{n.Text(), n}
}

func (d decoder) places(key string) (out []place) {
	for _, n := range d.At(key).List() {
		out = append(out, place{n.Text(), n})
	}
	return out
}
