package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func (w *writePath) custom(kind, version, name string) engine.ObjectKey {
	return w.key(testGroup, version, kind, name)
}

func (w *writePath) widgetCases() []writeCase {
	cases := []writeCase{
		changes("CR scalar / defaulted (needs CRD)", set("spec|a", "two"), set("spec|def", "mine")),
		changes("CR atomic list element / append", set("spec|atom|[n2]|v", 20), add("spec|atom", fields{"name": "n3", "v": 3})),
		changes("CR set list add end / middle", add("spec|lset", "c", "[c]"), insert("spec|lset", 1, "m", "[m]")),
		changes("CR map list element change / add / two-key",
			set("spec|lmap|[m1]|v", 10), add("spec|lmap", fields{"name": "m3", "v": 3}), set("spec|mkey|[proto=udp]|v", 20)),
		changes("CR default key (proto absent in live? tcp)", set("spec|mkey|[proto=tcp]|v", 10), secondLabel),
		changes("CR preserve-unknown add deep / change", set("spec|free|p|new", fields{"l": []any{1, "a", nil, fields{}}}), set("spec|free|s", fields{"now": "map"})),
		changes("CR preserve-unknown list in free / null inside", set("spec|free|p|q", []any{1, 2, 3}), set("spec|free|nul", nil)),
		changes("CR int-or-string int->string / string->int", set("spec|port", "http"), set("spec|port", 8080)),
		changes("CR nested add / remove / default y", set("spec|nested|z|k2", "v2"), set("spec|nested|yy", 8), remove("spec|nested|yy")),
		changes("CR nullable: null add / null->value", set("spec|nul", nil), set("spec|nul", "v")),
		changes("CR null on non-nullable / with default", set("spec|a", nil), set("spec|def", nil)),
		changes("CR atomic map add / label", set("spec|amap|y", "2"), secondLabel),
		changes("CR number 1.5 -> 2 / 2.0", set("spec|num", 2), set("spec|num", 2.0)),
		changes("CR embedded resource / metadata inside", set("spec|tpl|data|x", "y"), set("spec|tpl|metadata|labels|l", "1")),
		changes("CR empty map/list add / fill", all(set("spec|nested|z", fields{}), set("spec|lset", []any{})), set("spec|nested|z|n", "1")),
		changes("CR unknown field / label", set("spec|bogus", "x"), secondLabel),
		changes("CR status subresource", set("status|phase", "x"), set("status|conds", []any{fields{"type": "T"}})),
	}
	for i := range cases {
		name := fmt.Sprintf("w%d", i+1)
		cases[i].key = w.custom("Widget", "v1", name)
		cases[i].setup = w.object("widget", name)
	}
	cases[0].setup = then(func() error { return w.define("Widget", "widget") }, cases[0].setup)
	cases[len(cases)-1].key.Subresource = "status"
	return cases
}

func (w *writePath) widgetOwnerCases() []writeCase {
	key := w.custom("Widget", "v1", "emptied")
	return []writeCase{{
		name: "CR owned empty map {} filled by other", key: key,
		setup: then(w.object("widget", "emptied"),
			func() error { return w.applyAs(w.ctx, manager, w.manifest("widget-owned", "emptied"), true) },
			func() error {
				return w.patchAs(w.ctx, "human", key, types.MergePatchType, `{"spec":{"opts":{"a":"theirs","k":"theirs"}}}`)
			}),
		changes: []mutation{secondLabel, set("spec|num", 3)},
	}}
}

// schemaChangeCases: the schema changes under stored objects, and the writer
// knows of it or does not. The Gadgets of all cases are made in the first one.
func (w *writePath) schemaChangeCases() []writeCase {
	gadget := func(name string) engine.ObjectKey { return w.custom("Gadget", "v1", name) }
	redefined := func(as string) func() error {
		return func() error { return w.redefine("Gadget", as) }
	}
	forget := func() error { w.forget(); return nil }
	know := func() error {
		w.forget()
		_, err := w.Types(w.ctx, schema.GroupVersionKind{Group: testGroup, Version: "v1", Kind: "Gadget"}, true)
		return err
	}
	first := then(func() error { return w.define("Gadget", "atomic-list") },
		w.object("gadget", "g1"), w.object("gadget", "g2"), w.object("gadget", "g3"), w.object("gadget", "g4"),
		w.object("gadget-string-duplicates", "g5"), w.object("gadget-string", "g6"))
	label, a := secondLabel, set("spec|a", "two")
	x, yo := set("spec|l|[x]|v", "10"), set("spec|l|[yo]|v", "20")
	return []writeCase{
		{
			name: "CRD schema changed: dropped field, we own it", key: gadget("g1"), setup: first,
			changes: []mutation{all(set("spec|gone", "mine"), x), label, yo}, between: then(redefined("map-list"), forget),
		},
		{name: "CRD schema changed: dropped field, not ours", key: gadget("g2"), changes: []mutation{a, label}},
		{name: "CRD schema changed: stored type now invalid (string in integer), label", key: gadget("g6"), changes: []mutation{label, a}},
		{name: "CRD schema changed: invalid type + duplicate keys, label", key: gadget("g5"), changes: []mutation{label, a}},
		{
			name: "CRD schema changed: client holds the OLD schema", key: gadget("g3"),
			setup: then(redefined("atomic-list"), know, redefined("map-list")), changes: []mutation{x, yo},
		},
		{
			name: "CRD schema changed map->atomic: client holds the OLD (map) schema", key: gadget("g4"),
			setup: then(know, redefined("atomic-list")), changes: []mutation{x, yo},
		},
	}
}

func (w *writePath) versionCases() []writeCase {
	autoscaler := func(version string) engine.ObjectKey {
		return w.key("autoscaling", version, "HorizontalPodAutoscaler", "h1")
	}
	two := func(version string) engine.ObjectKey { return w.custom("Two", version, "t1") }
	return []writeCase{
		{
			name: "HPA v1 write", key: autoscaler("v1"), setup: w.object("autoscaler", "h1"),
			changes: []mutation{set("spec|targetCPUUtilizationPercentage", 60), set("spec|maxReplicas", 9)},
		},
		{name: "HPA v2 write on an object we own by v1", key: autoscaler("v2"), changes: []mutation{set("spec|minReplicas", 2), set("spec|maxReplicas", 11)}},
		{name: "HPA v1 again after that", key: autoscaler("v1"), changes: []mutation{set("spec|minReplicas", 3)}},
		{
			name: "CRD two versions (None): v2 write, storage v1", key: two("v2"),
			setup:   then(func() error { return w.define("Two", "ab", "abc") }, w.object("two", "t1")),
			changes: []mutation{set("spec|a", "x"), set("spec|c", "only-v2"), set("spec|b", "y")},
		},
		{name: "CRD two versions: v1 write on object we own by v2", key: two("v1"), changes: []mutation{set("spec|b", "z"), secondLabel}},
	}
}

// largeCases are not recorded; intent's own tests make such objects.
func (w *writePath) largeCases() []writeCase {
	config := func() error {
		data := map[string]string{}
		for i := range 500 {
			data[fmt.Sprintf("k%03d", i)] = strings.Repeat("x", 1000)
		}
		text, err := json.Marshal(data)
		if err != nil {
			return err
		}
		return w.withData("big", "data: "+string(text))()
	}
	widget := func() error {
		var list []any
		for i := range 4000 {
			list = append(list, fields{"name": fmt.Sprintf("n%05d%s", i, strings.Repeat("y", 60)), "v": i})
		}
		text, err := json.Marshal(list)
		if err != nil {
			return err
		}
		w.forget()
		return w.create(w.ctx, creator, w.manifest("widget-small", "bigcr", "{a: one}", "{lmap: "+string(text)+"}"))
	}
	return []writeCase{
		{
			name: "big ConfigMap 500 KB", key: w.configMap("big"), setup: config, large: true,
			changes: []mutation{set("data|k250", "changed"), set("data|new", "1")},
		},
		{
			name: "big CR: 4000 map-list elements, change one / one more", key: w.custom("Widget", "v1", "bigcr"), setup: widget, large: true,
			changes: []mutation{
				set("spec|lmap|[#2000]|v", -1), set("spec|lmap|[#3000]|v", -2), prepend("spec|lmap", fields{"name": "first", "v": 1}),
			},
		},
	}
}

func (w *writePath) looseCases() []writeCase {
	finalizers := func() error {
		return w.create(w.ctx, creator, w.manifest("configmap", "fin",
			"namespace: "+w.namespace+"}", "namespace: "+w.namespace+", finalizers: [a.b/c, a.b/d]}")+"data: {a: b}\n")
	}
	owner := fields{"apiVersion": "v1", "kind": "Namespace", "name": "q2", "uid": "u-2"}
	return []writeCase{
		{
			name: "CR schemaless (whole object preserve-unknown): nested, list", key: w.custom("Free", "v1", "f1"),
			setup: then(func() error { return w.define("Free", "free") }, w.object("free", "f1")),
			changes: []mutation{
				set("spec|a|b|c", 5), set("spec|l|[x]|v", 9), set("spec|a|b", "scalar"), set("other|q", []any{}), set("metadata|labels|l", "1"),
			},
		},
		{
			name: "finalizer append / ownerReference add / finalizer remove", key: w.configMap("fin"), setup: finalizers,
			changes: []mutation{
				add("metadata|finalizers", "a.b/e", "[a.b/e]"), add("metadata|ownerReferences", owner, "[#1]"),
				remove("metadata|finalizers|[a.b/d]"), set("metadata|labels|l", "1"),
			},
		},
	}
}
