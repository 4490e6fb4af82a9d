package e2e

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

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
