// Command judge compares ClusterPolicies with what kubectl mutate convert makes of them, and our evaluation of both with
// Kyverno's own, on objects that it makes from the schemas of kinds. Kyverno's programs decide what is right; variants of
// package compare suggest nothing here.
//
//	judge [-n OBJECTS] [-run REGEXP] [-seed N] [-bin DIR] [-keep DIR] [FILE ...]
//
// A FILE has ClusterPolicies and CustomResourceDefinitions. Without one, the policies are those of testdata and of package
// corpus, with CONFORMANCE_DIR those of other projects too. It prints the differences by policy, as Markdown, each with the
// smallest object that shows it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/test/corpus"
)

const (
	kyverno = "v1.19.1"
	timeout = 10 * time.Minute // of one program
)

func main() {
	j := judge{counts: map[string]int{}}
	flag.IntVar(&j.n, "n", 2000, "objects for each policy")
	flag.Uint64Var(&j.seed, "seed", 1, "of the objects")
	flag.StringVar(&j.bin, "bin", ".bin", "directory of kubectl-mutate, where Kyverno's program is built too")
	flag.StringVar(&j.keep, "keep", "", "directory for the files of each policy; they are removed if it is not set")
	flag.StringVar(&j.source, "source", ".", "the checkout")
	only := flag.String("run", "", "only policies with such a name, a regular expression")
	flag.Parse()
	if err := j.run(context.Background(), *only, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (j *judge) run(ctx context.Context, only string, files []string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if err := build(ctx, j.source, j.bin); err != nil {
		return err
	}
	cases, err := read(files, filepath.Join(j.source, "test/judge/testdata"))
	if err != nil {
		return err
	}
	for _, c := range cases {
		if !wanted.MatchString(c.name) {
			continue
		}
		j.found = findings{}
		outcome, err := j.judge(ctx, c)
		if err != nil {
			outcome = "not judged: " + err.Error()
		}
		j.counts[strings.SplitN(outcome, ":", 2)[0]]++
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.name, outcome)
		j.found.print(os.Stdout)
	}
	fmt.Fprintln(os.Stderr, j.counts)
	return nil
}

// build builds Kyverno's program once, as a command in a copy of Kyverno's module.
func build(ctx context.Context, source, bin string) error {
	program := filepath.Join(bin, "kyverno-judge-"+kyverno)
	driver := filepath.Join(source, "test/judge/testdata/kyverno/main.go")
	built, err := os.Stat(program)
	wanted, wantedErr := os.Stat(driver)
	if err == nil && wantedErr == nil && built.ModTime().After(wanted.ModTime()) {
		return nil
	}
	content, err := os.ReadFile(driver)
	if err != nil {
		return err
	}
	out, err := command(ctx, nil, "go", "mod", "download", "-json", "github.com/kyverno/kyverno@"+kyverno)
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kyverno")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, os.DirFS(module.Dir)); err != nil {
		return err
	}
	at := filepath.Join(dir, "cmd/cli/judge")
	if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "main.go"), content, 0o600)); err != nil {
		return err
	}
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "building Kyverno", kyverno)
	_, err = command(ctx, nil, "go", "-C", dir, "build", "-ldflags", "-s -w", "-o", program, "./cmd/cli/judge")
	return err
}

// command runs a program; its error has what it wrote to standard error.
func command(ctx context.Context, in io.Reader, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &log
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%s: %w: %s", filepath.Base(name), err, bytes.TrimSpace(log.Bytes()))
	}
	return out.Bytes(), nil
}

// testcase is a policy with what it needs.
type testcase struct {
	name        string
	policy      map[string]any
	world, crds []map[string]any
	alone       bool // without a kind of the same name in another group
}

// read reads the policies of files, or all that there are.
func read(files []string, testdata string) ([]testcase, error) {
	own, err := filepath.Glob(filepath.Join(testdata, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		own = files
	}
	var out []testcase
	for _, file := range own {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		out = append(out, split(strings.TrimSuffix(filepath.Base(file), ".yaml"), content)...)
	}
	if len(files) > 0 {
		return out, nil
	}
	pairs, err := corpus.Pairs()
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		out = append(out, split(p.ID, p.Files["old.yaml"], p.Files["objects.yaml"])...)
	}
	cases, err := corpus.Cases()
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		if slices.Contains(c.Dialects, "kyverno") {
			out = append(out, split(c.ID, c.Files["policy.yaml"], c.Files["objects.yaml"], c.Files["world.yaml"])...)
		}
	}
	return out, nil
}

func split(id string, contents ...[]byte) []testcase {
	var policies []testcase
	var crds, world []map[string]any
	for _, content := range contents {
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
			var o map[string]any
			if err := decoder.Decode(&o); err != nil {
				break
			}
			switch kind := text(o["kind"]); {
			case strings.HasPrefix(text(o["apiVersion"]), "kyverno.io/") && (kind == "ClusterPolicy" || kind == "Policy"):
				policies = append(policies, testcase{name: id + "/" + text(object(o["metadata"])["name"]), policy: o})
			case kind == "Parts":
				policies = append(policies, combine(id, o)...)
			case kind == "CustomResourceDefinition":
				crds = append(crds, o)
			case kind != "" && text(object(o["metadata"])["name"]) != "":
				world = append(world, o)
			}
		}
	}
	for i := range policies {
		policies[i].crds, policies[i].world = crds, world
	}
	return policies
}

// combine makes a policy of each part.
func combine(id string, parts map[string]any) []testcase {
	var out []testcase
	add := func(sort string, n int, match, preconditions, mutate any) {
		rule := map[string]any{"name": "r", "match": match, "mutate": mutate}
		if preconditions != nil {
			rule["preconditions"] = preconditions
		}
		name := fmt.Sprintf("%s-%d", sort, n+1)
		out = append(out, testcase{name: id + "/" + name, policy: map[string]any{
			"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{"pod-policies.kyverno.io/autogen-controllers": "none"}},
			"spec":     map[string]any{"rules": []any{rule}},
		}})
	}
	resources := func(kind string) any {
		return map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{kind}}}}}
	}
	label := map[string]any{"patchStrategicMerge": map[string]any{"metadata": map[string]any{"labels": map[string]any{"hit": "yes"}}}}
	for i, value := range list(parts["values"]) {
		annotation := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"out": value}}}
		add("value", i, resources("acme.io/v1/Gauge"), nil, map[string]any{"patchStrategicMerge": annotation})
	}
	for i, condition := range list(parts["conditions"]) {
		add("condition", i, resources("acme.io/v1/Gauge"), map[string]any{"all": []any{condition}}, label)
	}
	for i, mutation := range list(parts["mutations"]) {
		add("mutation", i, resources("Pod"), nil, mutation)
	}
	for i, match := range list(parts["matches"]) {
		add("match", i, match, nil, label)
	}
	return out
}

type judge struct {
	n                 int
	seed              uint64
	source, bin, keep string
	found             findings
	counts            map[string]int
}

var converted = regexp.MustCompile(`(\d+) rules? of (\d+) converted`)

// judge compares all four answers on all objects of a policy.
func (j *judge) judge(ctx context.Context, c testcase) (string, error) {
	original := c
	dir, err := os.MkdirTemp("", "judge")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if j.keep != "" {
		dir = filepath.Join(j.keep, strings.ReplaceAll(c.name, "/", "_"))
	}
	kinds, err := j.prepare(&c, dir)
	if err != nil {
		return "", err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	newer, err := command(ctx, nil, filepath.Join(j.bin, "kubectl-mutate"), "convert", "-p", in("old.yaml"), "-f", in("world.yaml"), "--allow-unknown-kinds=*")
	if rules := converted.FindStringSubmatch(fmt.Sprint(err)); len(newer) == 0 || len(rules) > 0 && rules[1] != rules[2] {
		if original.alone || len(c.crds) == len(original.crds) {
			return "not converted: " + fmt.Sprint(err), nil
		}
		original.alone = true // it may be because of the kind in another group
		return j.judge(ctx, original)
	}
	if err := os.WriteFile(in("new.yaml"), newer, 0o600); err != nil {
		return "", err
	}
	operations, objects := []string{"CREATE", "UPDATE"}, map[string][]map[string]any{}
	for i, operation := range operations {
		if objects[operation], err = j.objects(c, kinds, uint64(i)); err != nil {
			return "", err
		}
	}
	theirs, err := j.kyverno(ctx, in, objects)
	if err != nil {
		return "", err
	}
	acted := map[string]int{}
	for _, operation := range operations {
		objects := objects[operation]
		if err := write(in("objects.yaml"), "---\n", objects); err != nil {
			return "", err
		}
		answers := map[string][]answer{}
		for _, side := range sides {
			answers["Kyverno: "+side] = theirs[side+operation]
			if answers["ours: "+side], err = j.preview(ctx, in, side, operation, objects); err != nil {
				return "", err
			}
		}
		for n, o := range objects {
			if strings.Contains(fmt.Sprint(answers["Kyverno: new"][n].errors), "field not declared in schema") {
				j.counts["objects with fields that Kyverno's schemas do not have"]++
				continue
			}
			for _, side := range sides {
				by := answers["Kyverno: "+side][n]
				if what, _ := compare(o, answer{object: o}, by); what != "" && len(by.errors) == 0 {
					acted[side]++
				}
			}
			for _, pair := range [][3]string{
				{"Kyverno: old", "Kyverno: new", "Kyverno: old, new"},
				{"Kyverno: old", "ours: old", "old: Kyverno, ours"},
				{"Kyverno: new", "ours: new", "new: Kyverno, ours"},
			} {
				one, other := answers[pair[0]][n], answers[pair[1]][n]
				if what, paths := compare(o, one, other); what != "" {
					j.found.add(&finding{
						policy: c.name, between: pair[2], what: what, paths: paths, operation: operation, object: o, one: one, other: other,
					})
				}
			}
		}
		j.counts["objects"] += len(objects)
	}
	return fmt.Sprintf("judged: %d objects, %d changed by the old policy and %d by the new one, %d kinds of differences",
		j.n, acted["old"], acted["new"], len(j.found)), nil
}

// prepare writes the files of a policy, and returns the kinds of its objects.
func (j *judge) prepare(c *testcase, dir string) ([]schema.GroupVersionKind, error) {
	s, err := newSchemas(j.source, c.crds)
	if err != nil {
		return nil, err
	}
	kinds := kindsOf(s, c.policy)
	if len(kinds) == 0 {
		return nil, errors.New("no kind of it is known")
	}
	if !c.alone && j.random(*c, 9).IntN(3) == 0 && !strings.Contains(fmt.Sprint(c.crds), kinds[0].Kind) {
		c.crds = append(slices.Clip(c.crds), another(kinds[0]))
	}
	named := map[string]bool{}
	for _, o := range c.world {
		if o["kind"] == "Namespace" {
			named[text(object(o["metadata"])["name"])] = true
		}
	}
	g := &generator{schemas: s, pool: newPool(c.policy["spec"]), Rand: j.random(*c, 8)}
	for _, name := range namespaces(g.pool) {
		labels := map[string]any{"kubernetes.io/metadata.name": name}
		for range g.IntN(4) {
			labels[g.strings[g.IntN(len(g.strings))]] = g.strings[g.IntN(len(g.strings))]
		}
		maps.DeleteFunc(labels, func(k string, v any) bool { return !validLabel(k, text(v)) })
		if !named[name] {
			c.world = append(slices.Clip(c.world), map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels}})
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "crds"), 0o755); err != nil {
		return nil, err
	}
	if len(c.crds) > 0 {
		err = write(filepath.Join(dir, "crds/crds.yaml"), "---\n", c.crds)
	}
	return kinds, errors.Join(err, write(filepath.Join(dir, "old.yaml"), "", []map[string]any{c.policy}),
		write(filepath.Join(dir, "world.yaml"), "---\n", slices.Concat(c.world, c.crds)))
}

// namespaces are those of the objects: common ones, and those that the policy may mean.
func namespaces(p *pool) []string {
	out := []string{"default", "kube-system", "team-a"}
	for _, s := range p.strings {
		if validName(s) && len(out) < 12 && !slices.Contains(out, s) && (strings.Contains(s, "-") || len(out) < 8) {
			out = append(out, s)
		}
	}
	return out
}

// kindsOf are the kinds that a policy names, and with Pods two of their controllers.
func kindsOf(s *schemas, policy map[string]any) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	var collect func(any)
	collect = func(v any) {
		for key, e := range object(v) {
			if key == "kinds" {
				for _, kind := range list(e) {
					out = append(out, s.kinds(text(kind))...)
				}
			}
			collect(e)
		}
		for _, e := range list(v) {
			collect(e)
		}
	}
	for _, rule := range list(object(policy["spec"])["rules"]) {
		collect(object(rule)["match"])
	}
	if slices.Contains(out, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}) {
		out = slices.Concat(out, s.kinds("Deployment"), s.kinds("CronJob"))
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

func (j *judge) random(c testcase, part uint64) *rand.Rand {
	for _, r := range c.name {
		part = part*31 + uint64(r)
	}
	return rand.New(rand.NewPCG(j.seed, part))
}

// objects makes half of the objects of a policy.
func (j *judge) objects(c testcase, kinds []schema.GroupVersionKind, part uint64) ([]map[string]any, error) {
	s, err := newSchemas(j.source, c.crds)
	if err != nil {
		return nil, err
	}
	g := &generator{schemas: s, pool: newPool(c.policy["spec"]), Rand: j.random(c, part), taken: map[string]bool{}}
	g.namespaces, g.examples = namespaces(g.pool), map[schema.GroupVersionKind][]map[string]any{}
	for _, o := range c.world {
		gvk := schema.FromAPIVersionAndKind(text(o["apiVersion"]), text(o["kind"]))
		g.examples[gvk] = append(g.examples[gvk], o)
	}
	strangers := append(slices.Collect(maps.Keys(s.custom)), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	slices.SortFunc(strangers, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	var out []map[string]any
	for tries := 0; len(out) < j.n/2 && tries < 4*j.n; tries++ {
		gvk := kinds[g.IntN(len(kinds))]
		if g.IntN(12) == 0 {
			gvk = strangers[g.IntN(len(strangers))]
		}
		if o := g.object(gvk, len(out)); o != nil {
			out = append(out, o)
		}
	}
	return out, nil
}

func write(path, between string, objects []map[string]any) error {
	var out bytes.Buffer
	for _, o := range objects {
		content, err := json.Marshal(o)
		if err != nil {
			return err
		}
		out.WriteString(between)
		out.Write(content)
		out.WriteString("\n")
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}

var sides = []string{"old", "new"} //nolint:gochecknoglobals // an immutable table

// kyverno returns the answers of Kyverno's program, by side and operation.
func (j *judge) kyverno(ctx context.Context, in func(string) string, objects map[string][]map[string]any) (map[string][]answer, error) {
	var lines bytes.Buffer
	var order []string
	for operation := range objects {
		for _, side := range sides {
			for _, o := range objects[operation] {
				if err := json.NewEncoder(&lines).Encode(map[string]any{"policy": in(side + ".yaml"), "operation": operation, "object": o}); err != nil {
					return nil, err
				}
				order = append(order, side+operation)
			}
		}
	}
	args := []string{"-world", in("world.yaml")}
	if _, err := os.Stat(in("crds/crds.yaml")); err == nil {
		args = append(args, "-crds", in("crds/crds.yaml"))
	}
	out, err := command(ctx, &lines, filepath.Join(j.bin, "kyverno-judge-"+kyverno), args...)
	if err != nil {
		return nil, err
	}
	answers := map[string][]answer{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for _, of := range order {
		var line struct {
			Object map[string]any
			Errors []string
		}
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("Kyverno answered fewer objects: %w", err) //nolint:staticcheck // a name
		}
		answers[of] = append(answers[of], answer{line.Object, line.Errors})
	}
	return answers, nil
}

// preview returns the answers of kubectl mutate preview.
func (j *judge) preview(ctx context.Context, in func(string) string, side, operation string, objects []map[string]any) ([]answer, error) {
	out, failed := command(ctx, nil, filepath.Join(j.bin, "kubectl-mutate"), "preview", "-p", in(side+".yaml"), "-f", in("objects.yaml"), "--world", in("world.yaml"),
		"--operation", operation, "--validate=none", "--allow-unknown-kinds=*", "-A", "-o", "json", "-q")
	var report struct {
		Changes []struct {
			Object struct{ UID string }
			After  map[string]any
			Steps  []struct{ Outcome, Reason string }
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, errors.Join(failed, err)
	}
	answers := make([]answer, len(objects))
	for i, o := range objects {
		answers[i].object = o
	}
	for _, change := range report.Changes {
		i, err := strconv.Atoi(strings.TrimPrefix(change.Object.UID, "judge-"))
		if err != nil || i >= len(answers) {
			continue // the target of a rule
		}
		if change.After != nil {
			answers[i].object = change.After
		}
		for _, step := range change.Steps {
			if slices.Contains([]string{"failed", "denied", "unsupported"}, step.Outcome) {
				answers[i].errors = append(answers[i].errors, step.Reason)
			}
		}
	}
	return answers, nil
}
