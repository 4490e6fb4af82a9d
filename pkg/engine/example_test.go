package engine_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// A policy is compiled by the dialect of its language. What goes wrong is a *CompileError with the line.
func ExampleDialect() {
	program, err := kyverno.New().Compile(engine.Compilation{
		Documents: engine.Documents(object(examplePolicy)),
		Warn:      func(lint engine.CompileError) { fmt.Println("warning:", lint.Err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rule := range program.Rules() {
		fmt.Println(rule)
	}
	// Output:
	// defaults/team
	// defaults/replicas
}

// A program is evaluated on objects and reads others, here from a snapshot that needs no cluster.
func ExampleProgram() {
	changes, err := evaluate(examplePolicy, exampleDeployment)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range changes {
		fmt.Println(change.Subject, "changed:", change.Changed())
		for _, step := range change.Steps {
			fmt.Println(step.Rule, step.Outcome)
		}
	}
	// Output:
	// apps/Deployment shop/web changed: true
	// defaults/team changed
	// defaults/replicas changed
}

// A change has each field that differs, with the rule that wrote it last.
func ExampleChange() {
	changes, err := evaluate(examplePolicy, exampleDeployment)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range changes {
		for _, field := range change.ToShow().Fields { // without what was made of Secrets
			fmt.Printf("%s %s: %v -> %v (%s)\n", field.Kind, engine.PathString(field.Path), field.From, field.To, field.Rule())
		}
	}
	// Output:
	// added metadata.labels: <nil> -> map[team:shop] (defaults/team)
	// replaced spec.replicas: 1 -> 3 (defaults/replicas)
}

const examplePolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: defaults}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Deployment]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {team: shop}}}}
  - name: replicas
    match: {any: [{resources: {kinds: [Deployment]}}]}
    mutate: {patchStrategicMerge: {spec: {replicas: 3}}}
`

const exampleDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 1}
`

// object reads YAML.
func object(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

// evaluate returns the change of each object by a policy, without a cluster.
func evaluate(policy string, objects ...string) (changes []*engine.Change, err error) {
	program, err := kyverno.New().Compile(engine.Compilation{
		Documents: engine.Documents(object(policy)),
		Warn:      func(engine.CompileError) {},
	})
	if err != nil {
		return nil, err
	}
	var loader snapshot.Loader
	for _, text := range objects {
		loader.Add(engine.NewDocument(object(text), ""))
	}
	s, err := loader.Load(snapshot.Options{})
	if err != nil {
		return nil, err
	}
	world := &engine.World{Reader: s, Mapper: s.Mapper(), Memo: &engine.Memo{}}
	e := evaluation.New([]engine.Program{program}, world, evaluation.Options{})
	source, ctx := s.Source(engine.Scope{}), context.Background()
	if err := e.Prepare(ctx, source); err != nil { // which rules change other objects than they match
		return nil, err
	}
	err = e.Run(ctx, source, func(c *engine.Change) error {
		changes = append(changes, c)
		return nil
	})
	return changes, err
}
