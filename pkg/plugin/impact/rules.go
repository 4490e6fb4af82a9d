package impact

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

const sealed = "may not change, because the object says immutable: true"

// updateRules are the rules of each kind, from the update validation of Kubernetes 1.36
// (k8s.io/kubernetes/pkg/apis/*/validation).
var updateRules = map[schema.GroupKind][]rule{ //nolint:gochecknoglobals // an immutable table
	{Kind: "Pod"}: podRules, {Kind: "Service"}: serviceRules, {Kind: "PersistentVolumeClaim"}: claimRules,
	{Group: "batch", Kind: "Job"}:       jobRules,
	{Group: "apps", Kind: "Deployment"}: append(fixed("spec.selector"), matchingLabels),
	{Group: "apps", Kind: "DaemonSet"}:  append(fixed("spec.selector"), matchingLabels),
	{Group: "apps", Kind: "ReplicaSet"}: append(fixed("spec.selector"), matchingLabels),
	{Group: "apps", Kind: "StatefulSet"}: {{
		place: "spec",
		except: []string{
			"spec.replicas", "spec.ordinals", "spec.template", "spec.updateStrategy",
			"spec.revisionHistoryLimit", "spec.persistentVolumeClaimRetentionPolicy", "spec.minReadySeconds",
		},
	}, matchingLabels},

	{Kind: "ReplicationController"}: {matchingLabels},
	{Kind: "ConfigMap"}:             sealedBy("data", "binaryData", "immutable"),
	{Kind: "Secret"}:                append(sealedBy("data", "stringData", "immutable"), rule{place: "type"}),
	{Kind: "PersistentVolume"}:      {volumeSource, {place: "spec.volumeMode"}},
	{Kind: "ResourceQuota"}:         fixed("spec.scopes"),
	{Kind: "Node"}: {
		onceSet("spec.podCIDR"), onceSet("spec.podCIDRs"),
		onceSet("spec.providerID"),
	},

	{Group: "storage.k8s.io", Kind: "StorageClass"}: fixed("parameters", "provisioner", "reclaimPolicy",
		"volumeBindingMode"),
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}: fixed("spec"),
	{Group: "storage.k8s.io", Kind: "CSIDriver"}: fixed("spec.attachRequired",
		"spec.volumeLifecycleModes"),

	{Group: "apps", Kind: "ControllerRevision"}:                       fixed("data"),
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:         fixed("roleRef"),
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  fixed("roleRef"),
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               fixed("value", "preemptionPolicy"),
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                      fixed("handler"),
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                fixed("spec.controller"),
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                   fixed("spec.parentRef"),
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:                fixed("addressType"),
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                 fixed("spec"),
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}:         fixed("spec"),
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: fixed("spec"),
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: fixed("spec.group", "spec.names.plural"),
}

// podRules: ValidatePodUpdate. Resources of a running Pod change only through its subresource resize.
var podRules = []rule{ //nolint:gochecknoglobals // an immutable table
	{
		place: "spec", why: "may not change on a Pod",
		except: []string{
			"spec.containers[*].image", "spec.initContainers[*].image", "spec.activeDeadlineSeconds",
			"spec.tolerations",
			"spec.schedulingGates", "spec.terminationGracePeriodSeconds", "spec.nodeSelector", "spec.affinity",
		},
	},
	{place: "spec.activeDeadlineSeconds", refused: deadlineExtended, why: "may only be set or shortened"},
	{place: "spec.tolerations", refused: tolerationLost, why: "may only be added to"},
	{place: "spec.schedulingGates", refused: gateAdded, why: "may only be removed"},
	{place: "spec.terminationGracePeriodSeconds", refused: graceChanged, why: "may not change on a Pod"},
	{place: "spec.nodeSelector", refused: selectorFixed, why: "may only be added to, while scheduling gates hold the Pod back"},
	{place: "spec.affinity", refused: affinityFixed, why: "may not change on a Pod"},
}

func deadlineExtended(before, after map[string]any) bool {
	was, is := valueAt(before, "spec", "activeDeadlineSeconds"), valueAt(after, "spec", "activeDeadlineSeconds")
	return was != nil && (is == nil || numberOf(is, 0) > numberOf(was, 0))
}

// tolerationLost: each toleration stays, except for its seconds.
func tolerationLost(before, after map[string]any) bool {
	withoutSeconds := func(o map[string]any) []any {
		list := valueOf[[]any](o, "spec", "tolerations")
		out := slices.Clone(list)
		for i, t := range list {
			if m, ok := t.(map[string]any); ok {
				out[i] = diff.Without(m, "tolerationSeconds")
			}
		}
		return out
	}
	return losesAny(withoutSeconds(before), withoutSeconds(after))
}

func gateAdded(before, after map[string]any) bool {
	was := valueOf[[]any](before, "spec", "schedulingGates")
	is := valueOf[[]any](after, "spec", "schedulingGates")
	return losesAny(is, was)
}

// losesAny reports whether a value of one list is not in the other.
func losesAny(from, in []any) bool {
	return slices.ContainsFunc(from, func(v any) bool {
		return !slices.ContainsFunc(in, func(w any) bool { return diff.Same(v, w) })
	})
}

// graceChanged: a negative period may become 1.
func graceChanged(before, after map[string]any) bool {
	const field = "terminationGracePeriodSeconds"
	return numberOf(valueAt(before, "spec", field), 0) >= 0 || numberOf(valueAt(after, "spec", field), 0) != 1
}

func gated(pod map[string]any) bool {
	gates := valueOf[[]any](pod, "spec", "schedulingGates")
	return len(gates) > 0
}

func selectorFixed(before, after map[string]any) bool {
	if !gated(before) {
		return true
	}
	was := valueOf[map[string]any](before, "spec", "nodeSelector")
	is := valueOf[map[string]any](after, "spec", "nodeSelector")
	for name, v := range was {
		if !diff.Same(is[name], v) {
			return true
		}
	}
	return false
}

// affinityFixed: while gates hold the Pod back, its node affinity may be narrowed; whether a change narrows
// it is left to the server.
func affinityFixed(before, after map[string]any) bool {
	if !gated(before) {
		return true
	}
	return slices.ContainsFunc([]string{"podAffinity", "podAntiAffinity"}, func(kind string) bool {
		return !diff.Same(valueAt(before, "spec", "affinity", kind), valueAt(after, "spec", "affinity", kind))
	})
}

// matchingLabels: a template whose Pods the selector would not find is refused.
var matchingLabels = rule{ //nolint:gochecknoglobals // an immutable table
	place: "spec.template.metadata.labels", refused: unselected, why: "would not match spec.selector",
}

func unselected(_, after map[string]any) bool {
	podLabels := valueOf[map[string]any](after, "spec", "template", "metadata", "labels")
	set := labels.Set{}
	for name, v := range podLabels {
		set[name], _ = v.(string)
	}
	selector := valueOf[map[string]any](after, "spec", "selector")
	_, expressions := selector["matchExpressions"]
	// a ReplicationController's
	if _, names := selector["matchLabels"].(map[string]any); !names && !expressions {
		selector = map[string]any{"matchLabels": selector}
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed); err != nil {
		return false
	}
	parsed, err := metav1.LabelSelectorAsSelector(&typed)
	return err == nil && !parsed.Matches(set)
}

// fixed returns rules for fields that may never change.
func fixed(places ...string) []rule {
	var out []rule
	for _, p := range places {
		out = append(out, rule{place: p})
	}
	return out
}

func sealedBy(names ...string) []rule {
	var out []rule
	for _, p := range names {
		out = append(out, rule{place: p, why: sealed, refused: func(before, _ map[string]any) bool {
			return valueOf[bool](before, "immutable")
		}})
	}
	return out
}

// onceSet returns the rule for a field that may be set once.
func onceSet(p string) rule {
	return rule{place: p, refused: func(before,
		_ map[string]any,
	) bool {
		return !empty(valueAt(before, strings.Split(p, ".")...))
	}}
}

// volumeSource: everything in a PersistentVolumeSpec except its own fields. A node affinity may change with
// a feature gate.
var volumeSource = rule{ //nolint:gochecknoglobals // an immutable table
	place: "spec", why: "belongs to the source of the volume, which may not change",
	except: []string{
		"spec.capacity", "spec.accessModes", "spec.claimRef", "spec.persistentVolumeReclaimPolicy",
		"spec.storageClassName",
		"spec.mountOptions", "spec.volumeMode", "spec.nodeAffinity", "spec.volumeAttributesClassName",
		"spec.csi.controllerExpandSecretRef",
	},
}

// claimRules: ValidatePersistentVolumeClaimUpdate.
var claimRules = []rule{ //nolint:gochecknoglobals // an immutable table
	{place: "spec", except: []string{
		"spec.resources.requests", "spec.volumeAttributesClassName",
		"spec.volumeName", "spec.storageClassName",
	}},
	onceSet("spec.volumeName"),
	onceSet("spec.storageClassName"),
	{place: "spec.resources.requests", refused: unbound, why: "may only change once the claim is bound"},
	{place: "spec.volumeAttributesClassName", refused: unbound, why: "may only change once the claim is bound"},
	{place: "spec.resources.requests.storage", refused: shrunk, why: "may not get smaller"},
}

// shrunk: a claim that cannot grow as requested may go back, but not below its capacity.
func shrunk(before, after map[string]any) bool {
	was := quantityOf(valueAt(before, "spec", "resources", "requests", "storage"))
	is := quantityOf(valueAt(after, "spec", "resources", "requests", "storage"))
	has := quantityOf(valueAt(before, "status", "capacity", "storage"))
	return is.Cmp(was) < 0 && is.Cmp(has) <= 0
}

func quantityOf(v any) resource.Quantity {
	q, _ := resource.ParseQuantity(fmt.Sprint(v)) // zero for anything else
	return q
}

func unbound(before, _ map[string]any) bool {
	return valueOf[string](before, "status", "phase") != "Bound"
}

// serviceRules: ValidateServiceUpdate, after the server has filled in its allocations. A Service that is, or
// becomes, an ExternalName may change.
var serviceRules = []rule{ //nolint:gochecknoglobals // an immutable table
	{place: "spec.clusterIP", refused: addressChanged(clusterIP), why: "may not change once set"},
	{place: "spec.clusterIPs", refused: addressChanged(firstClusterIP), why: "may not change once set"},
	{place: "spec.loadBalancerClass", refused: bothLoadBalancers, why: "may not change once set"},
}

// addressChanged: the first address is the Service's own; "" is filled in by the server.
func addressChanged(address func(service map[string]any) string) func(before, after map[string]any) bool {
	external := func(o map[string]any) bool { return valueOf[string](o, "spec", "type") == "ExternalName" }
	return func(before, after map[string]any) bool {
		was, is := address(before), address(after)
		return was != "" && is != "" && was != is && !external(before) && !external(after)
	}
}

func clusterIP(service map[string]any) string {
	return valueOf[string](service, "spec", "clusterIP")
}

func firstClusterIP(service map[string]any) string {
	list := valueOf[[]any](service, "spec", "clusterIPs")
	if len(list) == 0 {
		return ""
	}
	first, _ := list[0].(string)
	return first
}

func bothLoadBalancers(before, after map[string]any) bool {
	balancer := func(o map[string]any) bool { return valueOf[string](o, "spec", "type") == "LoadBalancer" }
	return balancer(before) && balancer(after)
}

// jobRules: ValidateJobSpecUpdate. The template of a suspended Job may change in parts.
var jobRules = append( //nolint:gochecknoglobals // an immutable table
	fixed("spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex",
		"spec.managedBy", "spec.successPolicy"),
	rule{place: "spec.completions", refused: countFixed, why: "may only change together with spec.parallelism, on an Indexed Job"},
	rule{place: "spec.template", refused: notSuspended, why: "may not change while the Job is not suspended"},
)

func countFixed(_, after map[string]any) bool {
	spec := valueOf[map[string]any](after, "spec")
	if valueOf[string](spec, "completionMode") != "Indexed" {
		return true
	}
	return spec["completions"] != nil && numberOf(spec["completions"], 1) != numberOf(spec["parallelism"], 1)
}

func notSuspended(before, _ map[string]any) bool {
	return !valueOf[bool](before, "spec", "suspend")
}

// A place is a path as engine.PathPattern writes it, without the keys of list elements:
// "spec.containers[*].image".

// isWithin reports whether a place is another place, or below it.
func isWithin(p, q string) bool {
	below, ok := strings.CutPrefix(p, q)
	return ok && (below == "" || below[0] == '.' || below[0] == '[')
}

// meet reports whether one of two places is within the other.
func meet(p, q string) bool { return isWithin(p, q) || isWithin(q, p) }

// meetsAny reports whether a place meets any of several.
func meetsAny(all []string, p string) bool {
	return slices.ContainsFunc(all, func(q string) bool { return meet(p, q) })
}

// fieldsAt returns the paths of the changed fields at chosen places.
func fieldsAt(c *engine.Change, chosen func(place string) bool) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		if p := c.Fields[i].Path; chosen(engine.PathPattern(p)) {
			out = append(out, p)
		}
	}
	return out
}

// within returns the paths of the changed fields within a place.
func within(c *engine.Change, p string) []fieldpath.Path {
	return fieldsAt(c, func(place string) bool { return isWithin(place, p) })
}

// patterns lists paths for a message about several objects: "spec.containers[*].env[*]".
func patterns(paths []fieldpath.Path) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = engine.PathPattern(p)
	}
	slices.Sort(out)
	return engine.Few(slices.Compact(out))
}

// pathNames lists paths for a message: "spec.replicas, spec.paused and 2 more".
func pathNames(paths []fieldpath.Path) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = engine.PathString(p)
	}
	return engine.Few(out)
}

// valueAt returns a value in nested maps, or nil.
func valueAt(object map[string]any, names ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(object, names...) // only maps have fields
	return v
}

// valueOf returns a value of a type, or the type's zero value.
func valueOf[T any](object map[string]any, names ...string) T {
	v, _ := valueAt(object, names...).(T)
	return v
}

// numberOf returns a number, or fallback.
func numberOf(v any, fallback int64) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return fallback
}
