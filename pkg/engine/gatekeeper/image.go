package gatekeeper

import "strings"

// ImageReference is an image reference in the parts that AssignImage knows.
type ImageReference struct {
	Domain string // "registry.example.com:5000"; empty where none is written
	Path   string // "library/nginx"
	Tag    string // ":1.25" or "@sha256:..."; empty where none is written
}

// ParseImage takes a reference apart. It takes any text: what stands before the first
// slash is a domain if it looks like one, and what follows the first colon or at
// sign after that is the tag (mutators/assignimage/imageparser.go in Gatekeeper).
func ParseImage(text string) ImageReference {
	var r ImageReference
	r.Domain, text = splitDomain(text)
	r.Path = text
	if i := strings.IndexAny(text, ":@"); i >= 0 {
		r.Path, r.Tag = text[:i], text[i:]
	}
	return r
}

// With is the reference with the parts of another one that are not empty.
func (r ImageReference) With(parts ImageReference) ImageReference {
	if parts.Domain != "" {
		r.Domain = parts.Domain
	}
	if parts.Path != "" {
		r.Path = parts.Path
	}
	if parts.Tag != "" {
		r.Tag = parts.Tag
	}
	return r
}

// String puts the parts together.
func (r ImageReference) String() string {
	if r.Domain != "" {
		return r.Domain + "/" + r.Path + r.Tag
	}
	return r.Path + r.Tag
}

func splitDomain(text string) (domain, rest string) {
	first, rest, found := strings.Cut(text, "/")
	if !found || (first != "localhost" && !strings.ContainsAny(first, ".:")) {
		return "", text
	}
	return first, rest
}
