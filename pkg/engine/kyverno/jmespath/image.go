package jmespath

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxImage bounds a reference in bytes; the limits of name, tag and digest add up to less.
const maxImage = 4096

var knownImage = engine.Cached(parseImage) //nolint:gochecknoglobals // immutable

// parseImage splits a reference like Kyverno's image utilities: the first part is a registry if it has a dot,
// a colon or a capital letter or is localhost; all others get docker.io (without "library/"). The tag is
// "latest" if there is neither tag nor digest; missing parts are omitted. The full reference uses the digest
// if there is one, else the tag.
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
	// With a digest only, it ends with a colon, as in Kyverno.
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

// PodSpecPath returns the path of the Pod specification in objects of a kind; nil if there is none.
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

// Images returns the `images` context value of an object: the parts of each image by container list and
// container name. Missing parts, containers and lists, and invalid images, are omitted, so a query for them
// finds an unknown key. It is nil for kinds without a Pod specification and for objects without images.
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
			if parts, err := knownImage(text); name != "" && text != "" && err == nil {
				image := maps.Clone(parts)
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
