package e2e

import (
	"fmt"
	"slices"

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
