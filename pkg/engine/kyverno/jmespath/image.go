package jmespath

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxImage is how long a reference may be, in bytes: name, tag and digest have bounds of
// their own, which add up to less.
const maxImage = 4096

// The parts that Kyverno adds to a reference that lacks them.
const (
	defaultRegistry = "docker.io"
	defaultTag      = "latest"
)

// imageReference is a reference taken apart. Tag and Digest are empty where the reference
// has none; Tag is "latest" where it has neither.
type imageReference struct {
	Registry, Path, Name, Tag, Digest string
}

// parseImage reads a reference as Kyverno's image utilities do: the first part is a
// registry when it has a dot, a colon or a capital letter or is localhost, and
// docker.io is put before all others (without "library/").
func parseImage(image string) (imageReference, error) {
	if len(image) > maxImage {
		return imageReference{}, fmt.Errorf("bad image %q: it is longer than %d bytes", engine.Shorten(image, maxQuoted), maxImage)
	}
	full := withRegistry(image)
	ref, err := reference.Parse(full)
	if err != nil {
		return imageReference{}, fmt.Errorf("bad image %q: %w", image, err)
	}
	var parsed imageReference
	if named, ok := ref.(reference.Named); ok {
		parsed.Registry = reference.Domain(named)
		parsed.Path = reference.Path(named)
		parsed.Name = parsed.Path[strings.LastIndexByte(parsed.Path, '/')+1:]
	}
	if tagged, ok := ref.(reference.Tagged); ok {
		parsed.Tag = tagged.Tag()
	}
	if digested, ok := ref.(reference.Digested); ok {
		parsed.Digest = digested.Digest().String()
	}
	if parsed.Tag == "" && parsed.Digest == "" {
		parsed.Tag = defaultTag
	}
	return parsed, nil
}

func withRegistry(image string) string {
	first, _, found := strings.Cut(image, "/")
	if found && (strings.ContainsAny(first, ".:") || first == "localhost" || strings.ToLower(first) != first) {
		return image
	}
	return defaultRegistry + "/" + image
}

// String is the whole reference, by digest where there is one, else by tag.
func (i imageReference) String() string {
	if i.Digest != "" {
		return i.repository() + "@" + i.Digest
	}
	return i.referenceWithTag()
}

// referenceWithTag leaves the digest out; of a reference by digest alone it ends
// with a colon, as Kyverno's does.
func (i imageReference) referenceWithTag() string { return i.repository() + ":" + i.Tag }

func (i imageReference) repository() string {
	if i.Registry == "" {
		return i.Path
	}
	return i.Registry + "/" + i.Path
}

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
