package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Where most changes go in a Deployment.
const (
	podSpec    = "spec|template|spec|"
	containers = podSpec + "containers"
	app        = containers + "|[app]|"
	side       = containers + "|[side]|"
)

type fields = map[string]any

var secondLabel = set("metadata|labels|second", "2")

// writePathCases lists all cases, in order.
func writePathCases(w *writePath) []writeCase {
	return slices.Concat(
		w.namespaceCases(),
		w.metadataCases(), w.containerCases(), w.podSpecCases(), w.oddValueCases(),
		w.duplicateCases(), w.ownerCases(), w.meanwhileCases(), w.subresourceCases(),
		w.configCases(), w.networkCases(), w.accessCases(), w.podCases(), w.nodeCases(),
		w.widgetCases(), w.widgetOwnerCases(), w.schemaChangeCases(), w.versionCases(), w.largeCases(), w.looseCases(),
	)
}

// deployments gives each of the cases a Deployment of its own.
func (w *writePath) deployments(prefix string, cases ...writeCase) []writeCase {
	for i := range cases {
		name := fmt.Sprintf("%s%d", prefix, i+1)
		cases[i].key = w.key("apps", "v1", "Deployment", name)
		cases[i].setup = func() error { return w.create(w.ctx, creator, w.manifest("deployment", name)) }
	}
	return cases
}

func changes(name string, ms ...mutation) writeCase { return writeCase{name: name, changes: ms} }

func (w *writePath) namespaceCases() []writeCase {
	key := engine.ObjectKey{Version: "v1", Name: w.namespace}
	key.Kind = "Namespace"
	return []writeCase{{name: "namespace labels", key: key, changes: []mutation{
		set("metadata|labels|env", "prod"), set("metadata|labels|pod-security.kubernetes.io/enforce", "baseline"),
	}}}
}

func (w *writePath) metadataCases() []writeCase {
	return w.deployments("metadata",
		changes("label add / annotation add", set("metadata|labels|new", "1"), set("metadata|annotations|a.b/c", "x")),
		changes("label change / annotation change", set("metadata|labels|tier", "b"), set("metadata|annotations|note", "two")),
		changes("label remove / annotation remove", remove("metadata|labels|tier"), remove("metadata|annotations|team/x")),
		changes("label add then remove own label", set("metadata|labels|new", "1"), remove("metadata|labels|new")),
		changes("label add+remove in one", all(set("metadata|labels|new", "1"), remove("metadata|labels|tier")), secondLabel),
	)
}

func (w *writePath) containerCases() []writeCase {
	fromField := fields{"name": "B", "valueFrom": fields{"fieldRef": fields{"fieldPath": "metadata.name"}}}
	return w.deployments("container",
		changes("env add end / image change", add(app+"env", fields{"name": "D", "value": "4"}), set(app+"image", "nginx:2")),
		changes("env change / env add first", set(app+"env|[B]|value", "20"), prepend(app+"env", fields{"name": "Z", "value": "0"})),
		changes("env remove / env add", remove(app+"env|[B]"), add(app+"env", fields{"name": "D", "value": "4"})),
		changes("env value->valueFrom / back", set(app+"env|[B]", fromField), set(app+"env|[B]", fields{"name": "B", "value": "9"})),
		changes("env on container without env", add(side+"env", fields{"name": "Q", "value": "1"}), add(side+"env", fields{"name": "W", "value": "2"})),
		changes("resources change / add non-canonical", set(app+"resources|limits|cpu", "200m"), set(app+"resources|limits|memory", "1024Mi")),
		changes("resources cpu 1000m (non-canonical)", set(app+"resources|limits|cpu", "1000m"), secondLabel),
		changes("resources as number cpu 1", set(app+"resources|limits|cpu", 1), secondLabel),
		changes("resources remove limit / add", remove(app+"resources|limits|memory"), set(side+"resources", fields{"limits": fields{"cpu": "1"}})),
		changes("securityContext add / change", set(app+"securityContext|readOnlyRootFilesystem", true), set(app+"securityContext|runAsNonRoot", false)),
		changes("capabilities (atomic) change / sc remove field",
			set(app+"securityContext|capabilities|add", []any{"NET_ADMIN", "SYS_TIME"}), remove(app+"securityContext|runAsNonRoot")),
		changes("container last / then its env", add(containers, fields{"name": "c3", "image": "x:1"}), add(containers+"|[c3]|env", fields{"name": "Q", "value": "1"})),
		changes("container first / label", prepend(containers, fields{"name": "c0", "image": "x:1"}), secondLabel),
		changes("container remove / add", remove(containers+"|[side]"), add(containers, fields{"name": "c3", "image": "x:1"})),
		changes("initContainer first / last", prepend(podSpec+"initContainers", fields{"name": "i0", "image": "x:1"}), add(podSpec+"initContainers", fields{"name": "i9", "image": "x:1"})),
		changes("initContainers reorder / label", toFront(podSpec+"initContainers", "[i2]"), secondLabel),
		changes("ports 80/UDP beside 80/TCP / rename",
			add(app+"ports", fields{"containerPort": 80, "protocol": "UDP", "name": "http-u"}, "[protocol=UDP]"), set(app+"ports|[protocol=UDP]|name", "http-q")),
		changes("port without protocol / key change 80->81", add(app+"ports", fields{"containerPort": 9090, "name": "m"}), set(app+"ports|[http]|containerPort", 81)),
	)
}

func (w *writePath) podSpecCases() []writeCase {
	toleration := func(key string) fields { return fields{"key": key, "operator": "Exists"} }
	return w.deployments("podspec",
		changes("tolerations append / replace", add(podSpec+"tolerations", toleration("k2"), "[key=k2]"), set(podSpec+"tolerations", []any{toleration("k9")})),
		changes("args append / shorten", set(app+"args", []any{"-a", "-b", "-c"}), set(app+"args", []any{"-c"})),
		changes("args to empty list / label", set(app+"args", []any{}), secondLabel),
		changes("nodeSelector (atomic map) add / remove", set(podSpec+"nodeSelector|gpu", "yes"), remove(podSpec+"nodeSelector|zone")),
		changes("hostNetwork set / dnsPolicy change (defaulted)", set(podSpec+"hostNetwork", true), set(podSpec+"dnsPolicy", "Default")),
		changes("defaulted field change / same", set(podSpec+"terminationGracePeriodSeconds", 60), set(podSpec+"terminationGracePeriodSeconds", 90)),
		changes("defaulted field removed / label", remove(podSpec+"terminationGracePeriodSeconds"), secondLabel),
		changes("volume type change emptyDir->configMap / mount",
			set(podSpec+"volumes|[v]", fields{"name": "v", "configMap": fields{"name": "x"}}), add(app+"volumeMounts", fields{"name": "v", "mountPath": "/w"})),
		changes("volume emptyDir medium / imagePullSecrets", set(podSpec+"volumes|[v]|emptyDir|medium", "Memory"), add(podSpec+"imagePullSecrets", fields{"name": "reg"})),
		changes("strategy Recreate (rollingUpdate must go) / label", all(set("spec|strategy|type", "Recreate"), remove("spec|strategy|rollingUpdate")), secondLabel),
		changes("strategy Recreate without removing rollingUpdate", set("spec|strategy|type", "Recreate"), secondLabel),
		changes("hidden: image change (template) then env of other container", set(app+"image", "nginx:3"), add(side+"env", fields{"name": "Q", "value": "1"})),
		changes("unknown field / label", set(podSpec+"bogus", "x"), secondLabel),
		changes("immutable selector / label", set("spec|selector|matchLabels|x", "y"), secondLabel),
	)
}

func (w *writePath) oddValueCases() []writeCase {
	return w.deployments("odd",
		changes("value equal to live / label", set("metadata|labels|tier", "a"), secondLabel),
		changes("null value / label", set(podSpec+"nodeName", nil), secondLabel),
		changes("null over existing / label", set(podSpec+"nodeSelector", nil), secondLabel),
		changes("empty map and list / label", all(set(podSpec+"hostAliases", []any{}), set("spec|template|metadata|annotations|x", "")), secondLabel),
		changes("false, zero and empty string where absent / label",
			all(set(podSpec+"hostNetwork", false), set(podSpec+"priority", 0), set(podSpec+"hostname", "")), secondLabel),
	)
}

// mutation is what a policy would do to an object. Paths are like
// "spec|template|spec|containers|[app]|image": a step in brackets names the list
// element of that name, of that value, of a field ("[protocol=UDP]") or of a
// position ("[#0]").
type mutation func(object map[string]any)

func set(path string, v any) mutation {
	return edit(path, func(any) any { return copyOf(v) })
}

func remove(path string) mutation {
	return edit(path, func(any) any { return absent{} })
}

// add appends to a list what is not there yet; "there" is the element of the
// same name, or what one of the selectors finds.
func add(path string, v any, unless ...string) mutation {
	return insert(path, -1, v, unless...)
}

func prepend(path string, v any, unless ...string) mutation {
	return insert(path, 0, v, unless...)
}

// insert puts an element before a position, or at the end where that is -1.
func insert(path string, position int, v any, unless ...string) mutation {
	return edit(path, func(old any) any {
		list, _ := old.([]any)
		selectors := unless
		if len(selectors) == 0 {
			selectors = []string{"[" + nameOf(v) + "]"}
		}
		for _, s := range selectors {
			if find(list, s) >= 0 {
				return list
			}
		}
		if position < 0 {
			position = len(list)
		}
		return slices.Insert(slices.Clone(list), min(position, len(list)), copyOf(v))
	})
}

// toFront moves an element.
func toFront(path, selector string) mutation {
	return edit(path, func(old any) any {
		list := slices.Clone(old.([]any))
		i := find(list, selector)
		moved := list[i]
		return slices.Insert(slices.Delete(list, i, i+1), 0, moved)
	})
}

// withoutDuplicates keeps the first element of each name.
func withoutDuplicates(path string) mutation {
	return edit(path, func(old any) any {
		seen := map[string]bool{}
		return slices.DeleteFunc(slices.Clone(old.([]any)), func(x any) bool {
			name := nameOf(x)
			defer func() { seen[name] = true }()
			return seen[name]
		})
	})
}

func all(ms ...mutation) mutation {
	return func(object map[string]any) {
		for _, m := range ms {
			m(object)
		}
	}
}

type absent struct{}

// edit replaces the value at a path; maps on the way are made.
func edit(path string, f func(old any) any) mutation {
	return func(object map[string]any) {
		walk(object, strings.Split(path, "|"), f)
	}
}

func walk(v any, steps []string, f func(any) any) any {
	if len(steps) == 0 {
		return f(v)
	}
	step := steps[0]
	if strings.HasPrefix(step, "[") {
		list, _ := v.([]any)
		i := find(list, step)
		if i < 0 {
			return v
		}
		n := walk(list[i], steps[1:], f)
		if n == (absent{}) {
			return slices.Delete(slices.Clone(list), i, i+1)
		}
		list[i] = n
		return list
	}
	m, _ := v.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	n := walk(m[step], steps[1:], f)
	if n == (absent{}) {
		delete(m, step)
	} else {
		m[step] = n
	}
	return m
}

// find gives the position of the first element that a selector names, or -1.
func find(list []any, selector string) int {
	selector = strings.Trim(selector, "[]")
	if n, ok := strings.CutPrefix(selector, "#"); ok {
		if i, err := strconv.Atoi(n); err == nil && i < len(list) {
			return i
		}
		return -1
	}
	field, want, ok := strings.Cut(selector, "=")
	if !ok {
		field, want = "name", selector
	}
	return slices.IndexFunc(list, func(x any) bool {
		if m, ok := x.(map[string]any); ok {
			return fmt.Sprint(m[field]) == want
		}
		return fmt.Sprint(x) == want
	})
}

func nameOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	if name, ok := m["name"]; ok {
		return fmt.Sprint(name)
	}
	// Without a name, any one field will do.
	for _, k := range slices.Sorted(maps.Keys(m)) {
		return k + "=" + fmt.Sprint(m[k])
	}
	return ""
}

// copyOf gives values the types that they have when read from JSON. Whole
// floats stay floats: JSON would hide what that case is about.
func copyOf(v any) any {
	if f, ok := v.(float64); ok {
		return f
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var wrapped map[string]any
	if err := utiljson.Unmarshal([]byte(`{"v":`+string(text)+`}`), &wrapped); err != nil {
		panic(err)
	}
	return wrapped["v"]
}

// object sets a case up with an object of the archive, whose manifest is altered.
func (w *writePath) object(object, name string, replace ...string) func() error {
	return func() error { return w.create(w.ctx, creator, w.manifest(object, name, replace...)) }
}

func (w *writePath) configMap(name string) engine.ObjectKey {
	return w.key("", "v1", "ConfigMap", name)
}

// withData sets a case up with a ConfigMap; data is its `data: ...`.
func (w *writePath) withData(name, data string) func() error {
	return func() error { return w.create(w.ctx, creator, w.manifest("configmap", name)+data+"\n") }
}

func (w *writePath) configCases() []writeCase {
	secret := func(name string) engine.ObjectKey { return w.key("", "v1", "Secret", name) }
	return []writeCase{
		{
			name: "configmap odd keys", key: w.configMap("odd1"), setup: w.withData("odd1", `data: {".dot": a, "a_b": b, "x.y-z": c, "UPPER": d, "0": zero}`),
			changes: []mutation{
				all(set("data|.dot2", "1"), set("data|.dot", "2"), set("data|0", "null"), set("data|k.with.dots", "- a: b\n")), set("data|a_b", ""),
			},
		},
		{
			name: "configmap annotation keys with / and ~1", key: w.configMap("odd2"), setup: w.withData("odd2", `data: {a: b}`),
			changes: []mutation{all(set("metadata|annotations|a.b/c-d_e", "~0~1/"), remove("data|a")), set("metadata|annotations|fx", "é")},
		},
		{
			name: "configmap data absent -> data, binaryData", key: w.configMap("odd3"), setup: w.withData("odd3", ""),
			changes: []mutation{set("data|a", "1"), set("binaryData|b", "AAEC")},
		},
		{
			name: "configmap multi-line, unicode, number-like", key: w.configMap("odd4"), setup: w.withData("odd4", `data: {a: "1"}`),
			changes: []mutation{all(set("data|n", "1e3"), set("data|t", "true"), set("data|u", "ü\n\ttab\u2028")), set("data|a", "0x10")},
		},
		{
			name: "secret data change / add", key: secret("s1"), setup: w.object("secret", "s1"),
			changes: []mutation{set("data|a", "eHh4"), set("data|c", "Yw==")},
		},
		{
			name: "secret stringData (write only) / label", key: secret("s2"), setup: w.object("secret", "s2"),
			changes: []mutation{all(set("stringData|z", "plain"), set("stringData|a", "over")), secondLabel},
		},
		{
			name: "secret data non-canonical base64 / remove", key: secret("s3"), setup: w.object("secret", "s3"),
			changes: []mutation{set("data|a", "YR=="), remove("data|b")},
		},
	}
}

func (w *writePath) networkCases() []writeCase {
	service := func(name string) engine.ObjectKey { return w.key("", "v1", "Service", name) }
	monitoring := fields{"name": "m", "port": 9, "protocol": "TCP", "targetPort": 9}
	return []writeCase{
		{
			name: "service port targetPort change 53/UDP / add port", key: service("v1"), setup: w.object("service", "v1"),
			changes: []mutation{set("spec|ports|[dnsu]|targetPort", 5353), add("spec|ports", monitoring)},
		},
		{
			name: "service port key change / selector", key: service("v2"), setup: w.object("service", "v2"),
			changes: []mutation{set("spec|ports|[dns]|port", 54), set("spec|selector|tier", "b")},
		},
		{
			name: "service type NodePort->ClusterIP / label", key: service("v3"), setup: w.object("service", "v3"),
			changes: []mutation{set("spec|type", "ClusterIP"), secondLabel},
		},
		{
			name: "ingress rule host change / tls add", key: w.key("networking.k8s.io", "v1", "Ingress", "i1"), setup: w.object("ingress", "i1"),
			changes: []mutation{set("spec|rules|[#0]|host", "b.x"), set("spec|tls", []any{fields{"hosts": []any{"b.x"}, "secretName": "q"}})},
		},
		{
			name: "networkpolicy ingress rule / podSelector", key: w.key("networking.k8s.io", "v1", "NetworkPolicy", "np"), setup: w.object("networkpolicy", "np"),
			changes: []mutation{
				add("spec|ingress", fields{"ports": []any{fields{"port": 80, "protocol": "TCP"}}}, "[#1]"), set("spec|podSelector|matchLabels|c", "d"),
			},
		},
	}
}

func (w *writePath) accessCases() []writeCase {
	group := fields{"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"}
	return []writeCase{
		{
			name: "rolebinding subject add / label", key: w.key("rbac.authorization.k8s.io", "v1", "RoleBinding", "rb"), setup: w.object("rolebinding", "rb"),
			changes: []mutation{add("subjects", group), secondLabel},
		},
		{
			name: "serviceaccount imagePullSecrets add / first", key: w.key("", "v1", "ServiceAccount", "sa1"), setup: w.object("serviceaccount", "sa1"),
			changes: []mutation{add("imagePullSecrets", fields{"name": "b"}), set("automountServiceAccountToken", false)},
		},
	}
}

func (w *writePath) podCases() []writeCase {
	pod := func(name string) engine.ObjectKey { return w.key("", "v1", "Pod", name) }
	return []writeCase{
		{
			name: "pod image / pod label", key: pod("p1"), setup: w.object("pod", "p1"),
			changes: []mutation{set("spec|containers|[app]|image", "nginx:2"), secondLabel},
		},
		{
			name: "pod toleration append / env (refused)", key: pod("p2"), setup: w.object("pod", "p2"),
			changes: []mutation{
				add("spec|tolerations", fields{"key": "zz", "operator": "Exists"}, "[key=zz]"), add("spec|containers|[app]|env", fields{"name": "A", "value": "1"}),
			},
		},
	}
}

func (w *writePath) nodeCases() []writeCase {
	node := func(name string) (engine.ObjectKey, func() error) {
		key := w.key("", "v1", "Node", name)
		key.Namespace = ""
		return key, func() error {
			manifest := w.manifest("node", name)
			object, err := parse(manifest)
			if err != nil {
				return err
			}
			if err := w.create(w.ctx, creator, manifest); err != nil {
				return err
			}
			w.deleteAtEnd(object)
			return nil
		}
	}
	labelled, makeLabelled := node("writepath-1")
	capable, makeCapable := node("writepath-2")
	deaf, makeDeaf := node("writepath-3")
	capable.Subresource = "status"
	return []writeCase{
		{
			name: "node label / taint add", key: labelled, setup: makeLabelled,
			changes: []mutation{set("metadata|labels|pool", "x"), add("spec|taints", fields{"key": "t2", "effect": "NoSchedule"}, "[key=t2]")},
		},
		{
			name: "node status.capacity extended resource (/status)", key: capable, setup: makeCapable,
			changes: []mutation{
				all(set("status|capacity|example.com/gpu", "4"), set("status|allocatable|example.com/gpu", "4")), set("status|capacity|example.com/fpga", "2"),
			},
		},
		{
			name: "node status.capacity through the MAIN endpoint", key: deaf, setup: makeDeaf,
			changes: []mutation{set("status|capacity|example.com/gpu", "4")},
		},
	}
}

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
