package jmespath

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

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
