package jmespath

import (
	"fmt"
	"path"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxImage is how long a reference may be, in bytes: name, tag and digest have bounds of
// their own, which add up to less.
const maxImage = 4096

// parseImage takes a reference apart as Kyverno's image utilities do: the first part is a registry when it
// has a dot, a colon or a capital letter or is localhost, and docker.io is put before all others (without
// "library/"). A tag is "latest" where there is neither tag nor digest; what there is not is left out. The
// whole reference is by digest where there is one, else by tag.
func parseImage(image string) (map[string]any, error) {
	if len(image) > maxImage {
		return nil, fmt.Errorf("bad image %q: it is longer than %d bytes", engine.Shorten(image, maxQuoted), maxImage)
	}
	full := image
	if first, _, found := strings.Cut(image, "/"); !found ||
		!strings.ContainsAny(first, ".:") && first != "localhost" && strings.ToLower(first) == first {
		full = "docker.io/" + image
	}
	ref, err := reference.Parse(full)
	if err != nil {
		return nil, fmt.Errorf("bad image %q: %w", image, err)
	}
	named, ok := ref.(reference.Named)
	if !ok {
		return nil, fmt.Errorf("bad image %q: it has no name", image)
	}
	parts := map[string]any{"path": reference.Path(named), "name": path.Base(reference.Path(named))}
	digested, hasDigest := ref.(reference.Digested)
	tag := "latest"
	if tagged, ok := ref.(reference.Tagged); ok {
		tag = tagged.Tag()
	} else if hasDigest {
		tag = ""
	}
	// Of a reference by digest alone it ends with a colon, as Kyverno's does.
	parts["referenceWithTag"] = named.Name() + ":" + tag
	parts["reference"] = parts["referenceWithTag"]
	if tag != "" {
		parts["tag"] = tag
	}
	if domain := reference.Domain(named); domain != "" {
		parts["registry"] = domain
	}
	if hasDigest {
		parts["digest"] = digested.Digest().String()
		parts["reference"] = named.Name() + "@" + digested.Digest().String()
	}
	return parts, nil
}

// PodSpecPath is where objects of a kind have the specification of their Pods; nil for kinds without.
func PodSpecPath(gk schema.GroupKind) []string {
	switch gk.String() {
	case "Pod":
		return []string{"spec"}
	case "DaemonSet.apps", "Deployment.apps", "Job.batch", "ReplicaSet.apps", "ReplicationController",
		"StatefulSet.apps":
		return []string{"spec", "template", "spec"}
	case "CronJob.batch":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return nil
}

// Images returns the `images` context value of an object: by list of containers and
// name of container, the parts of its image. Parts, containers and lists that
// are not there, and images that cannot be parsed, are left out, so that a query
// for them meets an unknown key. The value is nil for kinds without a Pod
// specification and for objects without images.
func Images(object map[string]any, gk schema.GroupKind) map[string]any {
	path := PodSpecPath(gk)
	if path == nil {
		return nil
	}
	spec := object
	for _, field := range path {
		spec, _ = spec[field].(map[string]any)
	}
	all := map[string]any{}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		found := map[string]any{}
		for i, item := range containers {
			container, _ := item.(map[string]any)
			name, _ := container["name"].(string)
			text, _ := container["image"].(string)
			if image, err := parseImage(text); name != "" && text != "" && err == nil {
				image["jsonPointer"] = fmt.Sprintf("/%s/%s/%d/image", strings.Join(path, "/"), list, i)
				found[name] = image
			}
		}
		if len(found) > 0 {
			all[list] = found
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
