package gatekeeper

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

type imageReference struct {
	Domain string // "registry.example.com:5000"; may be empty
	Path   string // "library/nginx"
	Tag    string // ":1.25" or "@sha256:..."; may be empty
}

// parseImage splits any string: the part before the first slash is a domain if it looks like one; the tag
// starts at the first colon or at sign after it (mutators/assignimage/imageparser.go in Gatekeeper).
func parseImage(text string) imageReference {
	var r imageReference
	r.Domain, text = splitDomain(text)
	r.Path = text
	if i := strings.IndexAny(text, ":@"); i >= 0 {
		r.Path, r.Tag = text[:i], text[i:]
	}
	return r
}

// With returns the reference with the non-empty parts of another one.
func (r imageReference) With(parts imageReference) imageReference {
	return imageReference{
		Domain: cmp.Or(parts.Domain, r.Domain), Path: cmp.Or(parts.Path, r.Path), Tag: cmp.Or(parts.Tag, r.Tag),
	}
}

// String joins the parts.
func (r imageReference) String() string {
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

// The valid parts. They keep a part from running into its neighbour when the result is parsed again, so that
// assignment is idempotent.
var (
	domainForm = regexp.MustCompile(`^(?:\w[\w-]*\.[\w.-]*\w|localhost)(?::\d+)?$`)
	pathForm   = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._/]|__|-*)[a-z0-9]+)*$`)
	tagForm    = regexp.MustCompile(`^:\w[\w.-]{0,127}$`)
	digestForm = regexp.MustCompile(`^@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}$`)
)

// Validate returns Gatekeeper's error for invalid parts.
func (r imageReference) Validate() error {
	switch {
	case r == imageReference{}:
		return errors.New("at least one of [assignDomain, assignPath, assignTag] must be set")
	case r.Domain != "" && !domainForm.MatchString(r.Domain):
		return fmt.Errorf("assignDomain %q must be a fully-qualified domain name or localhost", r.Domain)
	case r.Path != "" && !pathForm.MatchString(r.Path):
		return fmt.Errorf("assignPath %q must be a valid docker image path", r.Path)
	case r.Tag != "" && !tagForm.MatchString(r.Tag) && !digestForm.MatchString(r.Tag):
		return fmt.Errorf("assignTag %q must be a valid docker image tag or digest starting with ':' or '@'", r.Tag)
	}
	if domain, _ := splitDomain(r.Path); domain != "" && r.Domain == "" {
		return fmt.Errorf("assignDomain must be set if the first part of assignPath %q can be interpretted as part of a domain", r.Path)
	}
	return nil
}
