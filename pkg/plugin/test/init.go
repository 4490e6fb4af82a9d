package test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// initial writes a test of what policies do to objects now.
type initial struct {
	*Options
	directory         string
	policies, objects []string // as the user typed them
	results           []any
	wanted            map[string][]*unstructured.Unstructured // by file
	left              int                                     // objects with values derived from Secrets
	several           bool
}

// errInit is the usage of --init.
var errInit = errors.New("--init takes -p POLICY-FILES, -f OBJECT-FILES and at most one directory, in which there is no test yet")

// run writes the first test of policies: that they do what they do now.
func (in *initial) run(ctx context.Context) (int, error) {
	d := engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{}}, in.directory)
	t := &document{Document: d, dir: ".", name: filepath.Base(absolute(in.directory)), values: map[string]any{}}
	node := policydecode.Node{Report: &policydecode.Report{Origin: "--init", Policy: kind}}
	for _, p := range in.policies {
		t.policies = append(t.policies, place{p, node})
	}
	for _, p := range in.objects {
		t.resources = append(t.resources, place{p, node})
	}
	s := open(ctx, t, in.factory.Options(engine.Request{}), nil)
	s.load(ctx)
	if len(s.errs) > 0 {
		return process.ExitNothing, errors.Join(s.errs...)
	}
	run, err := s.evaluate(ctx, in.factory, "")
	if err != nil {
		return process.ExitNothing, err
	}
	in.several = len(s.policies) > 1
	for _, program := range s.programs {
		for _, ref := range program.Rules() {
			in.rule(s, run, ref)
		}
	}
	if len(in.results) == 0 && in.left > 0 {
		return process.ExitNothing, errors.New("all results have values of Secrets, or values derived from them; --show-secrets writes these")
	}
	if len(in.results) == 0 {
		return process.ExitNothing, errors.New("no rule matches any of the objects, so there is nothing to test")
	}
	if err := in.write(t); err != nil {
		return process.ExitNothing, err
	}
	return process.ExitOK, nil
}

func absolute(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return absolute
}

// rule adds the results of a rule: one for the objects of each kind with the same status.
func (in *initial) rule(s *suite, run *run, ref engine.RuleRef) {
	type group struct{ kind, status string }
	names := map[group][]any{}
	var order []group
	for _, key := range s.named {
		steps := slices.DeleteFunc(run.steps(key, func(r engine.RuleRef) bool {
			return r.WithoutParameter() == ref.WithoutParameter()
		}), func(s engine.Step) bool { return s.Outcome == engine.NotMatched })
		if len(steps) == 0 {
			continue
		}
		step := worst(steps)
		of := run.after(key, ref.Dialect, func(r engine.RuleRef) bool { return r.Policy == ref.Policy })
		switch status := status(step, nil); {
		case step.Outcome == engine.Unsupported:
		case step.Confidential && !in.secrets, engine.IsSecret(of) && !in.secrets && status == "pass":
			in.left++
		default:
			g := group{key.Kind, status}
			if names[g] == nil {
				order = append(order, g)
			}
			name := key.Place().Name
			if key.Namespace != "" {
				name = key.Namespace + "/" + name
			}
			if names[g] = append(names[g], name); status == "pass" {
				in.want(ref, of)
			}
		}
	}
	for _, g := range order {
		out := structured.Object{{Name: "policy", Value: ref.Policy}}
		switch ref.Dialect {
		case kyvernoRules:
			out = out.Add("rule", ref.Rule)
		case "mutatingpolicy":
			out = out.Add("isMutatingPolicy", true)
		case "admissionpolicy":
			out = out.Add("isMutatingAdmissionPolicy", true)
		}
		out = out.Add("kind", g.kind).Add("resources", names[g]).Add("result", g.status)
		if g.status == "pass" {
			out = out.Add("patchedResources", in.file(ref))
		}
		in.results = append(in.results, out)
	}
}

// file returns the name of the file of a policy's wanted objects.
func (in *initial) file(ref engine.RuleRef) string {
	if !in.several {
		return "patched.yaml"
	}
	return "patched-" + file.PlainName(ref.Policy) + ".yaml"
}

// want adds a wanted object, once.
func (in *initial) want(ref engine.RuleRef, u *unstructured.Unstructured) {
	name := in.file(ref)
	if !slices.ContainsFunc(in.wanted[name], func(known *unstructured.Unstructured) bool {
		return diff.Same(known.Object, u.Object)
	}) {
		in.wanted[name] = append(in.wanted[name], u)
	}
}

// write writes the files, none of which may exist.
func (in *initial) write(t *document) error {
	relative := func(paths []string) (out []any) {
		for _, path := range paths {
			if rest, err := filepath.Rel(absolute(in.directory), absolute(path)); err == nil {
				path = rest
			}
			out = append(out, filepath.ToSlash(path))
		}
		return out
	}
	test := structured.Object{
		{Name: "apiVersion", Value: apiVersion},
		{Name: "kind", Value: kind},
		{Name: "metadata", Value: structured.Object{{Name: "name", Value: t.name}}},
		{Name: "policies", Value: relative(in.policies)},
		{Name: "resources", Value: relative(in.objects)},
		{Name: "results", Value: in.results},
	}
	text, err := structured.MarshalText(test, true)
	if err != nil {
		return err
	}
	files := map[string]string{cmp.Or(in.name, defaultName): text}
	objects := 0
	for name, wanted := range in.wanted {
		for _, u := range wanted {
			one, err := structured.MarshalText(u.Object, true)
			if err != nil {
				return err
			}
			if objects++; files[name] != "" {
				one = "---\n" + one
			}
			files[name] += one
		}
	}
	if err := os.MkdirAll(in.directory, 0o755); err != nil { //nolint:gosec // others may read tests
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := os.Lstat(filepath.Join(in.directory, name)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is there already: %w", filepath.Join(in.directory, name), cmp.Or(err, errInit))
		}
	}
	for name, text := range files {
		if err := file.Replace(filepath.Join(in.directory, name), file.Shared, []byte(text)); err != nil {
			return err
		}
	}
	errOut := in.factory.Streams.ErrOut
	if in.left > 0 {
		fmt.Fprintf(errOut, "note: left out, with values of Secrets or derived from them: %s; --show-secrets writes them\n", wording.Plural(in.left, "result"))
	}
	flag := ""
	if in.factory.Expand {
		flag = " --expand"
	}
	fmt.Fprintf(in.factory.Streams.Out, "Wrote %s with %s and %s.\nNext: kubectl mutate test %s%s\n", filepath.Join(in.directory, cmp.Or(in.name, defaultName)),
		wording.Plural(len(in.results), "result"), wording.Plural(objects, "wanted object"),
		wording.ShellQuote(in.directory), flag)
	return nil
}
