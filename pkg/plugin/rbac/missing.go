package rbac

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Missing says in kubectl's words which permission a refused read lacked: "list
// pods", "get configmaps/owners", "create subjectaccessreviews.authorization.k8s.io".
// It is empty for any other error.
func Missing(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	d := status.Status().Details
	if d.Kind == "" {
		return ""
	}
	resource := d.Kind
	if d.Group != "" {
		resource += "." + d.Group
	}
	var listing *engine.UnreadableError
	switch {
	case strings.HasSuffix(d.Kind, "reviews"):
		return "create " + resource
	case d.Name == "" || (errors.As(err, &listing) && !strings.Contains(listing.What, "/")):
		return "list " + resource
	}
	return fmt.Sprintf("get %s/%s", cmp.Or(resource, "?"), d.Name)
}
