//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// workload writes the inputs of the rows below a directory. They are the same each time.
type workload struct{ dir string }

func (w workload) path(name string) string { return filepath.Join(w.dir, name) }

// write writes a file line by line; one that is there is kept.
func (w workload) write(name string, content func(*bufio.Writer) error) error {
	if _, err := os.Stat(w.path(name)); err == nil {
		return nil
	}
	f, err := os.Create(w.path(name) + ".part")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	if err := content(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), w.path(name))
}

// objects writes n objects of about 3 KB, of five three Pods and two Deployments.
func (w workload) objects(n int) (string, error) {
	name := fmt.Sprintf("objects-%d.yaml", n)
	return w.path(name), w.write(name, func(out *bufio.Writer) error {
		g := generator{rand.New(rand.NewPCG(1, 2))} // the same numbers each time
		for i := range n {
			text, err := yaml.Marshal(g.object(i))
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "---\n%s", text)
		}
		return nil
	})
}

// policies writes n policies that match no object, and one that matches all Pods.
func (w workload) policies(n int) (string, error) {
	name := fmt.Sprintf("policies-%d.yaml", n+1)
	return w.path(name), w.write(name, func(out *bufio.Writer) error {
		for i := range n + 1 {
			kind := "ConfigMap"
			if i == n {
				kind = "Pod"
			}
			fmt.Fprintf(out, `---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: label-%d}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [%s]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(managed): "true"}}}}
`, i, kind)
		}
		return nil
	})
}

type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

type object = map[string]any

func (g generator) app() string {
	return g.one("cart", "checkout", "catalog", "search", "auth", "billing", "mailer", "frontend", "gateway", "ledger")
}

func (g generator) namespace() string {
	return g.one("default", "prod", "staging", "payments", "team-a", "team-b", "observability", "batch")
}

func (g generator) object(i int) object {
	app := g.app()
	labels := object{"app": app, "app.kubernetes.io/name": app, "app.kubernetes.io/instance": fmt.Sprintf("%s-%d", app, i), "tier": g.one("frontend", "backend", "data")}
	if g.chance(30) {
		labels["team"] = g.one("core", "growth", "infra")
	}
	annotations := object{
		"prometheus.io/scrape": "true", "prometheus.io/port": fmt.Sprint(9000 + i%100),
		"checksum/config": fmt.Sprintf("%016x%016x%016x%016x", g.Uint64(), g.Uint64(), g.Uint64(), g.Uint64()),
	}
	metadata := object{"name": fmt.Sprintf("%s-%06d", app, i), "namespace": g.namespace(), "labels": labels, "annotations": annotations}
	if i%5 < 3 {
		return object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": g.podSpec(i)}
	}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": object{
		"replicas": 1 + g.IntN(5), "selector": object{"matchLabels": object{"app": app}},
		"strategy": object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": 1, "maxUnavailable": 0}},
		"template": object{"metadata": object{"labels": labels, "annotations": annotations}, "spec": g.podSpec(i)},
	}}
}

func (g generator) podSpec(i int) object {
	containers := []object{g.container(0), g.container(1)}
	if g.chance(33) {
		containers = append(containers, g.container(2))
	}
	volumes := []object{{"name": "tmp", "emptyDir": object{}}, {"name": "config", "configMap": object{"name": fmt.Sprintf("cfg-%d", i%50)}}}
	spec := object{"serviceAccountName": "sa-" + g.app(), "containers": containers, "volumes": volumes}
	if g.chance(50) {
		spec["securityContext"] = object{"runAsNonRoot": true, "runAsUser": 1000 + i%7}
	}
	if g.chance(40) {
		spec["tolerations"] = []object{{"key": "dedicated", "operator": "Equal", "value": g.app(), "effect": "NoSchedule"}}
	}
	return spec
}

func (g generator) container(i int) object {
	image := g.one("nginx", "redis", "cassandra", "mongo", "postgres", "web", "api", "worker", "envoy", "busybox")
	registry := g.one("docker.io/library/", "", "ghcr.io/acme/", "quay.io/prom/", "registry.example.com:5000/shop/")
	env := []object{{"name": "POD_NAME", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.name"}}}}
	for range 1 + g.IntN(3) {
		env = append(env, object{"name": "URL_" + g.one("A", "B", "C", "D"), "value": "http://" + g.app() + "." + g.namespace() + ".svc:8080/v1"})
	}
	c := object{
		"name": fmt.Sprintf("%s-%d", image, i), "image": registry + image + g.one(":latest", "", ":1.25.3", ":v2.4.1"), "env": env,
		"ports":        []object{{"name": "http", "containerPort": 8000 + g.IntN(999), "protocol": "TCP"}},
		"volumeMounts": []object{{"name": "tmp", "mountPath": "/tmp"}, {"name": "config", "mountPath": "/etc/app", "readOnly": true}},
	}
	if g.chance(70) {
		c["resources"] = object{"requests": object{"cpu": fmt.Sprintf("%dm", 50*(1+g.IntN(8))), "memory": fmt.Sprintf("%dMi", 64*(1+g.IntN(8)))}}
	}
	if g.chance(60) {
		c["livenessProbe"] = object{"httpGet": object{"path": "/healthz", "port": "http"}, "initialDelaySeconds": 5 + g.IntN(25), "periodSeconds": 10}
		c["readinessProbe"] = object{"httpGet": object{"path": "/ready", "port": "http"}, "periodSeconds": 5}
	}
	return c
}
