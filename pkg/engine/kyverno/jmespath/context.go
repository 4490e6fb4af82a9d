package jmespath

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podPaths is where the Pod specification of a kind is.
//
//nolint:gochecknoglobals // an immutable table
var podPaths = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {"spec"},
	{Kind: "ReplicationController"}:      {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
}

// PodSpecPath is where objects of a kind have the specification of their Pods; nil for kinds without.
func PodSpecPath(gk schema.GroupKind) []string { return slices.Clone(podPaths[gk]) }

// Images returns the `images` context value of an object: by list of containers and
// name of container, the parts of its image. Parts, containers and lists that
// are not there, and images that cannot be parsed, are left out, so that a query
// for them meets an unknown key. The value is nil for kinds without a Pod
// specification and for objects without images.
func Images(object map[string]any, gk schema.GroupKind) map[string]any {
	path, ok := podPaths[gk]
	if !ok {
		return nil
	}
	spec := object
	for _, field := range path {
		spec, _ = spec[field].(map[string]any)
	}
	var all map[string]any
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		found := imagesOf(containers, append(slices.Clone(path), list))
		if len(found) == 0 {
			continue
		}
		if all == nil {
			all = make(map[string]any)
		}
		all[list] = found
	}
	return all
}

func imagesOf(containers []any, path []string) map[string]any {
	found := make(map[string]any, len(containers))
	for i, item := range containers {
		container, _ := item.(map[string]any)
		name, _ := container["name"].(string)
		text, _ := container["image"].(string)
		image, err := parseImage(text)
		if name == "" || text == "" || err != nil {
			continue
		}
		found[name] = image.fields(fmt.Sprintf("/%s/%d/image", strings.Join(path, "/"), i))
	}
	return found
}

func (i imageReference) fields(pointer string) map[string]any {
	fields := map[string]any{
		"name":             i.Name,
		"path":             i.Path,
		"reference":        i.String(),
		"referenceWithTag": i.referenceWithTag(),
		"jsonPointer":      pointer,
	}
	for name, part := range map[string]string{"registry": i.Registry, "tag": i.Tag, "digest": i.Digest} {
		if part != "" {
			fields[name] = part
		}
	}
	return fields
}
