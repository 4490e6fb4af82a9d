package gatekeeper

import (
	"errors"
	"fmt"
	"regexp"
)

// What may be assigned. The forms keep a part from running into its neighbour
// when the result is read again, so that assigning twice is assigning once.
var (
	domainForm = regexp.MustCompile(`^(?:\w[\w-]*\.[\w.-]*\w|localhost)(?::\d+)?$`)
	pathForm   = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._/]|__|-*)[a-z0-9]+)*$`)
	tagForm    = regexp.MustCompile(`^:\w[\w.-]{0,127}$`)
	digestForm = regexp.MustCompile(`^@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}$`)
)

// Validate says in Gatekeeper's words why parts cannot be assigned.
func (r ImageReference) Validate() error {
	switch {
	case r == ImageReference{}:
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
