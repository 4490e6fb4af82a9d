package match

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// NotMatchedError is why a rule does not apply to an object: the criterion of
// its match block that came closest, what it wants and what it found.
type NotMatchedError struct {
	// Criterion is a field of a match block, such as "kinds" or
	// "namespaceSelector", or "exclude" when the object matched and was excluded.
	Criterion    string
	Wanted, Seen string
}

// Error reads like "kinds: wants Pod, Deployment, is Service".
func (e *NotMatchedError) Error() string {
	switch {
	case e.Wanted == "":
		return e.Criterion
	case e.Seen == "":
		return fmt.Sprintf("%s: wants %s, has none", e.Criterion, e.Wanted)
	}
	return fmt.Sprintf("%s: wants %s, is %s", e.Criterion, e.Wanted, e.Seen)
}

// Reason renders a mismatch for those who asked.
func (m Mismatch) Reason(c *Candidate) error {
	if m.excluded {
		return &NotMatchedError{Criterion: "excluded by the rule's exclude block"}
	}
	wanted, seen := m.wantedAndSeen(c)
	return &NotMatchedError{Criterion: string(m.criterion), Wanted: wanted, Seen: seen}
}

func (m Mismatch) wantedAndSeen(c *Candidate) (wanted, seen string) {
	f := m.filter
	switch m.criterion {
	case byOperation:
		return strings.Join(f.operations, ", "), string(c.Operation)
	case byKind:
		return kindTexts(f.kinds), kindOf(c).String()
	case byName:
		return f.name, c.Object.GetName()
	case byNames:
		return strings.Join(f.names, ", "), c.Object.GetName()
	case byNamespace, byPolicyNamespace:
		return strings.Join(f.namespaces, ", "), NamespaceOf(c.Object)
	case byAnnotations:
		return joinPairs(f.annotations), joinPairs(c.Object.GetAnnotations())
	case bySelector:
		return f.labels.String(), joinPairs(c.Object.GetLabels())
	case byNamespaceSelector:
		if c.Namespace == nil {
			return f.nsLabels.String(), ""
		}
		return f.nsLabels.String(), joinPairs(c.Namespace.GetLabels())
	case byRoles:
		return strings.Join(f.roles, ", "), c.Request.User.Username
	case byClusterRoles:
		return strings.Join(f.clusterRole, ", "), c.Request.User.Username
	case bySubjects:
		return subjectTexts(f.subjects), c.Request.User.Username
	}
	return "", ""
}

func kindOf(c *Candidate) selector.Kind {
	k := c.Key
	if k.Group == "" { // as people write the core group
		k.Group = "*"
	}
	return selector.Kind{Group: k.Group, Version: k.Version, Kind: k.Kind, Subresource: k.Subresource}
}

func kindTexts(kinds []selector.Kind) string {
	out := make([]string, len(kinds))
	for i, kind := range kinds {
		out[i] = kind.String()
	}
	return strings.Join(out, ", ")
}

func subjectTexts(subjects []subject) string {
	out := make([]string, len(subjects))
	for i, s := range subjects {
		out[i] = s.kind + " " + s.name
	}
	return strings.Join(out, ", ")
}

func joinPairs(set map[string]string) string {
	out := make([]string, 0, len(set))
	for _, key := range sortedKeys(set) {
		out = append(out, key+"="+set[key])
	}
	return strings.Join(out, ",")
}

// UndecidedError says that a criterion cannot be judged, because what it needs
// cannot be read.
type UndecidedError struct {
	Field  string // "namespaceSelector", "roles"
	Reason string
}

// Error names the criterion and the reason.
func (e *UndecidedError) Error() string { return e.Field + ": " + e.Reason }
