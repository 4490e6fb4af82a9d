package openapi

import (
	_ "embed"
	"encoding/base64"
	"maps"
	"math"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// defaultsText has the defaults of Go types that no other field decides, as in the defaults.go and
// zz_generated.defaults.go below pkg/apis of Kubernetes 1.36.
//
//go:embed defaults.json
var defaultsText []byte

type fields = map[string]any

//nolint:gochecknoglobals // immutable tables
var (
	defaults = func() (out map[string]fields) {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(defaultsText, &out); err != nil {
			panic(err) // what the program is built with
		}
		return out
	}()
	// computed are the fields that a server sets because of others, from the same files: they replace existing
	// ones.
	computed = map[string]func(fields) fields{
		"apps/v1.DaemonSetUpdateStrategy":                rollingUpdate,
		"apps/v1.DeploymentStrategy":                     rollingUpdate,
		"apps/v1.StatefulSetSpec":                        claimTemplates,
		"apps/v1.StatefulSetUpdateStrategy":              statefulSetStrategy,
		"autoscaling/v2.HorizontalPodAutoscalerBehavior": scaling,
		"batch/v1.Job":                                   job,
		"core/v1.Container":                              pullPolicy("image", "imagePullPolicy"),
		"core/v1.EphemeralContainerCommon":               pullPolicy("image", "imagePullPolicy"),
		"core/v1.ImageVolumeSource":                      pullPolicy("reference", "pullPolicy"),
		"core/v1.LimitRangeItem":                         limitRangeItem,
		"core/v1.Namespace":                              namespace,
		"core/v1.Pod":                                    pod,
		"core/v1.PodSpec":                                podSpec,
		"core/v1.ReplicationController":                  replicationController,
		"core/v1.Secret":                                 secret,
		"core/v1.ServicePort":                            servicePort,
		"core/v1.ServiceSpec":                            serviceSpec,
		"core/v1.Volume":                                 volume,
		"networking/v1.NetworkPolicySpec":                policyTypes,
		"rbac/v1.Subject":                                subject,
		"resource/v1.DeviceSubRequest":                   exactCount,
		"resource/v1.ExactDeviceRequest":                 exactCount,
	}
)

// unless returns a field with a value, if the struct lacks it.
func unless(in fields, name string, v any) fields {
	if _, has := in[name]; has {
		return nil
	}
	return fields{name: v}
}

// with returns a struct with the fields of others, where the last one wins.
func with(in fields, others ...fields) fields {
	out := maps.Clone(in)
	if out == nil {
		out = fields{}
	}
	for _, one := range others {
		maps.Copy(out, one)
	}
	return out
}

func fieldsOf(in fields, name string) fields {
	below, _ := in[name].(fields)
	return below
}

func rollingUpdate(in fields) fields {
	if in["type"] == "RollingUpdate" {
		return unless(in, "rollingUpdate", fields{})
	}
	return nil
}

func statefulSetStrategy(in fields) fields {
	if in["type"] != nil {
		return nil
	}
	if in["rollingUpdate"] == nil {
		return fields{"type": "RollingUpdate", "rollingUpdate": fields{}}
	}
	return fields{"type": "RollingUpdate"}
}

func claimTemplates(in fields) fields {
	if list, ok := in["volumeClaimTemplates"].([]any); ok {
		claim := func(fields) fields { return fields{"apiVersion": "v1", "kind": "PersistentVolumeClaim"} }
		return fields{"volumeClaimTemplates": forEach(list, claim)}
	}
	return nil
}

// scaling completes the given rules of both directions; missing ones are among the defaults.
func scaling(in fields) fields {
	out := fields{}
	for name, rules := range defaults["autoscaling/v2.HorizontalPodAutoscalerBehavior"] {
		out[name] = with(rules.(fields), fieldsOf(in, name)) // the table is this package's
	}
	return out
}

// labelsOfTemplate gives an object without labels its template's labels.
func labelsOfTemplate(in fields) fields {
	labels := fieldsOf(fieldsOf(fieldsOf(fieldsOf(in, "spec"), "template"), "metadata"), "labels")
	if len(labels) == 0 || len(fieldsOf(fieldsOf(in, "metadata"), "labels")) > 0 {
		return nil
	}
	return fields{"metadata": with(fields{"labels": labels}, fieldsOf(in, "metadata"))}
}

func replicationController(in fields) fields {
	out, spec := labelsOfTemplate(in), fieldsOf(in, "spec")
	if labels := fieldsOf(fieldsOf(fieldsOf(spec, "template"), "metadata"), "labels"); len(labels) > 0 &&
		spec["selector"] == nil {
		return with(out, fields{"spec": with(spec, fields{"selector": labels})})
	}
	return out
}

func job(object fields) fields {
	in := fieldsOf(object, "spec")
	out := fields{
		"parallelism": int64(1), "backoffLimit": int64(6), "completionMode": "NonIndexed", "suspend": false,
		"podReplacementPolicy": "TerminatingOrFailed", "manualSelector": false,
	}
	if in["completions"] == nil && in["parallelism"] == nil {
		out["completions"] = int64(1)
	}
	if in["backoffLimitPerIndex"] != nil {
		out["backoffLimit"] = int64(math.MaxInt32)
	}
	if in["podFailurePolicy"] != nil {
		out["podReplacementPolicy"] = "Failed"
	}
	return with(fields{"spec": with(out, in)}, labelsOfTemplate(object))
}

// pullPolicy sets a missing pull policy: Always for an image with the tag latest or none, else IfNotPresent.
func pullPolicy(image, policy string) func(fields) fields {
	return func(in fields) fields {
		if in[policy] != nil {
			return nil
		}
		text, _ := in[image].(string)
		if text != "" && isLatest(text) {
			return fields{policy: "Always"}
		}
		return fields{policy: "IfNotPresent"}
	}
}

func isLatest(image string) bool {
	if strings.ContainsFunc(image, func(r rune) bool { return r <= ' ' || r > 'z' || 'A' <= r && r <= 'Z' }) {
		if _, err := reference.ParseNormalizedNamed(image); err != nil {
			return false
		}
	}
	name, _, digested := strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	return tag == "latest" || !tagged && !digested
}

func namespace(in fields) fields {
	metadata := fieldsOf(in, "metadata")
	name, _ := metadata["name"].(string)
	const label = "kubernetes.io/metadata.name"
	if labels := fieldsOf(metadata, "labels"); name != "" && labels[label] != name {
		return fields{"metadata": with(metadata, fields{"labels": with(labels, fields{label: name})})}
	}
	return nil
}

// pod gives containers requests where they have limits, and the ports of the host's network.
func pod(in fields) fields {
	if fieldsOf(in, "spec") == nil {
		return nil
	}
	spec := with(fields{"enableServiceLinks": true}, fieldsOf(in, "spec"))
	for _, name := range []string{"containers", "initContainers"} {
		if list, ok := spec[name].([]any); ok {
			spec[name] = forEach(list, func(c fields) fields {
				out := fields{}
				resources := fieldsOf(c, "resources")
				if limits := fieldsOf(resources, "limits"); limits != nil {
					out["resources"] = with(resources, fields{"requests": with(limits, fieldsOf(resources, "requests"))})
				}
				if ports, ok := c["ports"].([]any); ok && spec["hostNetwork"] == true {
					out["ports"] = forEach(ports, func(p fields) fields { return unless(p, "hostPort", p["containerPort"]) })
				}
				return out
			})
		}
	}
	return fields{"spec": spec}
}

// forEach returns a list whose elements have more fields.
func forEach(list []any, more func(fields) fields) []any {
	out := append([]any{}, list...)
	for i := range out {
		if in, ok := out[i].(fields); ok {
			if extra := more(in); len(extra) > 0 {
				out[i] = with(in, extra)
			}
		}
	}
	return out
}

// podSpec sets the account under both of its names.
func podSpec(in fields) fields {
	const now, once = "serviceAccountName", "serviceAccount"
	switch {
	case in[now] != nil && !engine.Identical(in[now], in[once]):
		return fields{once: in[now]}
	case in[now] == nil && in[once] != nil:
		return fields{now: in[once]}
	}
	return nil
}

func limitRangeItem(in fields) fields {
	if in["type"] != "Container" {
		return nil
	}
	limits := with(fieldsOf(in, "max"), fieldsOf(in, "default"))
	out, requests := fields{}, with(fieldsOf(in, "min"), limits, fieldsOf(in, "defaultRequest"))
	if len(limits) > 0 {
		out["default"] = limits
	}
	if len(requests) > 0 {
		out["defaultRequest"] = requests
	}
	return out
}

// secret merges its stringData into data.
func secret(in fields) fields {
	plain := fieldsOf(in, "stringData")
	if plain == nil {
		return nil
	}
	data := with(fieldsOf(in, "data"))
	for name, v := range plain {
		text, isText := v.(string)
		if !isText {
			return nil // no server accepts it
		}
		data[name] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return fields{"data": data, "stringData": nil}
}

// SecretAsStored returns a Secret with its stringData in data, as a server stores it; others as they are.
func SecretAsStored(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !engine.IsSecret(u) || fieldsOf(u.Object, "stringData") == nil {
		return u
	}
	object := with(u.Object, secret(u.Object))
	if object["stringData"] == nil {
		delete(object, "stringData")
	}
	return &unstructured.Unstructured{Object: object}
}

func servicePort(in fields) fields {
	if port := in["targetPort"]; port == nil || port == int64(0) || port == "" {
		return fields{"targetPort": in["port"]}
	}
	return nil
}

func serviceSpec(in fields) fields {
	out := fields{}
	external, _ := in["externalIPs"].([]any)
	switch in["type"] {
	case "LoadBalancer":
		out["allocateLoadBalancerNodePorts"] = true
		out["externalTrafficPolicy"], out["internalTrafficPolicy"] = "Cluster", "Cluster"
	case "NodePort":
		out["externalTrafficPolicy"], out["internalTrafficPolicy"] = "Cluster", "Cluster"
	case "ClusterIP":
		out["internalTrafficPolicy"] = "Cluster"
		if len(external) > 0 {
			out["externalTrafficPolicy"] = "Cluster"
		}
	}
	maps.DeleteFunc(out, func(name string, _ any) bool { return in[name] != nil })
	seconds := fieldsOf(fieldsOf(in, "sessionAffinityConfig"), "clientIP")["timeoutSeconds"]
	switch {
	case in["sessionAffinity"] == "None" && in["sessionAffinityConfig"] != nil:
		out["sessionAffinityConfig"] = nil
	case in["sessionAffinity"] == "ClientIP" && seconds == nil:
		out["sessionAffinityConfig"] = fields{"clientIP": fields{"timeoutSeconds": int64(10800)}}
	}
	return out
}

// volume is an emptyDir, if nothing else.
func volume(in fields) fields {
	if len(in) == 0 || len(in) == 1 && in["name"] != nil {
		return fields{"emptyDir": fields{}}
	}
	return nil
}

func policyTypes(in fields) fields {
	out := []any{"Ingress"}
	if egress, _ := in["egress"].([]any); len(egress) > 0 {
		out = append(out, "Egress")
	}
	return unless(in, "policyTypes", out)
}

func subject(in fields) fields {
	if in["kind"] == "User" || in["kind"] == "Group" {
		return unless(in, "apiGroup", "rbac.authorization.k8s.io")
	}
	return nil
}

func exactCount(in fields) fields {
	if in["allocationMode"] == "ExactCount" {
		return unless(in, "count", int64(1))
	}
	return nil
}
