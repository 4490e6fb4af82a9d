package e2e

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

const gitops = "argocd" // a manager that applies its whole intent

func (w *writePath) deployment(name string) engine.ObjectKey {
	return w.key("apps", "v1", "Deployment", name)
}

// made sets a case up with a Deployment whose manifest is altered.
func (w *writePath) made(name string, replace ...string) func() error {
	return func() error { return w.create(w.ctx, creator, w.manifest("deployment", name, replace...)) }
}

// patched lets another user patch a Deployment.
func (w *writePath) patched(by, name, operations string) func() error {
	return func() error { return w.patchAs(w.ctx, by, w.deployment(name), types.JSONPatchType, operations) }
}

func then(steps ...func() error) func() error {
	return func() error {
		for _, s := range steps {
			if err := s(); err != nil {
				return err
			}
		}
		return nil
	}
}

// duplicateCases: lists that hold a key twice, as old objects may.
func (w *writePath) duplicateCases() []writeCase {
	twice := []string{`{name: B, value: "2"}`, `{name: A, value: "dup"}, {name: B, value: "2"}`}
	return []writeCase{
		{
			name: "env duplicates live: label / env add", key: w.deployment("dup1"), setup: w.made("dup1", twice...),
			changes: []mutation{secondLabel, add(app+"env", fields{"name": "D", "value": "4"})},
		},
		{
			name: "env duplicates live: other env change / image", key: w.deployment("dup2"), setup: w.made("dup2", twice...),
			changes: []mutation{set(app+"env|[B]|value", "20"), set(app+"image", "nginx:2")},
		},
		{
			name: "env duplicates live: dup element change / dedupe", key: w.deployment("dup3"), setup: w.made("dup3", twice...),
			changes: []mutation{set(app+"env|[A]|value", "11"), withoutDuplicates(app + "env")},
		},
		{
			name: "duplicate appears after we own an element", key: w.deployment("dup4"), setup: w.made("dup4"),
			changes: []mutation{set(app+"env|[A]|value", "11"), secondLabel},
			between: w.patched("human", "dup4", `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"A","value":"zz"}}]`),
		},
	}
}

func (w *writePath) ownerCases() []writeCase {
	applied := func(name string, force bool, replace ...string) func() error {
		return func() error { return w.applyAs(w.ctx, gitops, w.manifest("deployment", name, replace...), force) }
	}
	clientSide := func() error {
		return w.create(w.ctx, "kubectl-client-side-apply", w.manifest("deployment", "csa",
			"annotations: {note: one", `annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: one`))
	}
	byController := func() error {
		return w.create(w.ctx, "kube-controller-manager", w.manifest("replicaset", "owner-abc"))
	}
	ownerless := func(name string) func() error {
		return then(w.made(name, "replicas: 1", "replicas: 0\n  paused: true"),
			w.patched("x", name, `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`))
	}
	oldLabel := `{"op":"add","path":"/metadata/labels/old","value":"1"}`
	return []writeCase{
		{
			name: "client-side-applied object", key: w.deployment("csa"), setup: clientSide,
			changes: []mutation{set(app+"image", "nginx:2"), secondLabel},
		},
		{
			name: "SSA of other manager (conflict)", key: w.deployment("ssa1"), setup: applied("ssa1", false),
			changes: []mutation{set(app+"image", "nginx:2"), set("metadata|labels|tier", "b")},
		},
		{
			name: "SSA owner re-applies with force between", key: w.deployment("ssa2"), setup: applied("ssa2", false),
			changes: []mutation{all(set(app+"image", "nginx:2"), set("metadata|labels|own", "1")), secondLabel}, between: applied("ssa2", true),
		},
		{
			name: "other manager re-applies SAME value (co-own) between", key: w.deployment("ssa3"), setup: applied("ssa3", false),
			changes: []mutation{set(app+"image", "nginx:2"), set(app+"image", "nginx:3")}, between: applied("ssa3", false, "nginx:1.0", "nginx:2"),
		},
		{
			name: "created by controller (ReplicaSet of a Deployment)", key: w.key("apps", "v1", "ReplicaSet", "owner-abc"), setup: byController,
			changes: []mutation{set("metadata|labels|new", "1"), set("metadata|annotations|x", "y")},
		},
		{
			name: "no managedFields: add / change", key: w.deployment("nomf1"), setup: ownerless("nomf1"),
			changes: []mutation{set("metadata|labels|new", "1"), set(app+"image", "nginx:2")},
		},
		{
			name: "no managedFields: remove / add", key: w.deployment("nomf2"), setup: ownerless("nomf2"),
			changes: []mutation{remove("metadata|labels|tier"), set("metadata|labels|new", "1")},
		},
		{
			name: "own Update entry: change same field / other", key: w.deployment("upd1"),
			setup: then(w.made("upd1"), w.patched(manager, "upd1",
				`[`+oldLabel+`,{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:7"}]`)),
			changes: []mutation{set(app+"image", "nginx:8"), secondLabel},
		},
		{
			name: "own Update entry: remove own label / add", key: w.deployment("upd2"),
			setup:   then(w.made("upd2"), w.patched(manager, "upd2", `[`+oldLabel+`]`)),
			changes: []mutation{remove("metadata|labels|old"), secondLabel},
		},
		{name: "SSA, JSON patch, SSA: label / remove tier / image", key: w.deployment("mixed"), setup: w.made("mixed"), changes: []mutation{
			set("metadata|labels|first", "1"), remove("metadata|labels|tier"), set(app+"image", "nginx:2"), set("metadata|labels|first", "9"),
			prepend(containers, fields{"name": "c0", "image": "x:1"}), set(containers+"|[c0]|image", "x:2"),
		}},
	}
}

// meanwhileCases: another client writes between our two changes.
func (w *writePath) meanwhileCases() []writeCase {
	return []writeCase{
		{
			name: "owned container removed by a human between", key: w.deployment("rem1"), setup: w.made("rem1"),
			changes: []mutation{set(side+"image", "envoy:2"), secondLabel},
			between: w.patched("human", "rem1", `[{"op":"remove","path":"/spec/template/spec/containers/1"}]`),
		},
		{
			name: "owned value changed by a human between", key: w.deployment("rem2"), setup: w.made("rem2"),
			changes: []mutation{set(app+"image", "nginx:2"), secondLabel},
			between: w.patched("human", "rem2", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:human"}]`),
		},
		{
			name: "atomic list owned, grown by a human between", key: w.deployment("rem3"), setup: w.made("rem3"),
			changes: []mutation{set(app+"args", []any{"-x"}), secondLabel},
			between: w.patched("human", "rem3", `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"-h"}]`),
		},
	}
}

func (w *writePath) subresourceCases() []writeCase {
	scale, status := w.deployment("scaled"), w.deployment("status")
	scale.Subresource, status.Subresource = "scale", "status"
	condition := fields{
		"type": "Mine", "status": "True", "reason": "R", "message": "m",
		"lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}
	return []writeCase{
		{
			name: "replicas, HPA-like writer between", key: w.deployment("scaled"), setup: w.made("scaled"),
			changes: []mutation{set("spec|replicas", 2), secondLabel},
			between: func() error {
				return w.patchAs(w.ctx, "hpa-controller", scale, types.MergePatchType, `{"spec":{"replicas":3}}`)
			},
		},
		{
			name: "Deployment status subresource", key: status, setup: w.made("status", "replicas: 1", "replicas: 0"),
			changes: []mutation{add("status|conditions", condition, "[type=Mine]"), set("status|conditions|[type=Mine]|message", "m2")},
		},
	}
}
