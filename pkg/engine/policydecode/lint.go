package policydecode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// flatMap finds a JSON pointer that goes on below a key of a map whose values are texts.
var flatMap = regexp.MustCompile(`^(.*/(?:metadata/(?:labels|annotations)|matchLabels|nodeSelector)/)([^/]+/.*[^/])$`)

// PointerSlip says that a JSON pointer goes on below a label or an annotation, whose key was to have a slash; empty if
// it does not.
func PointerSlip(pointer string) string {
	found := flatMap.FindStringSubmatch(pointer)
	if found == nil {
		return ""
	}
	return fmt.Sprintf("%s goes on below a text; a / in a key is written ~1: %s", pointer, found[1]+strings.ReplaceAll(found[2], "/", "~1"))
}

// metadataFields are those of all objects.
//
//nolint:gochecknoglobals // an immutable table
var metadataFields = []string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields",
}

// MetadataSlip says that no object has a field in its metadata, which may be a misspelling; empty if objects have it.
func MetadataSlip(field string) string {
	if slices.Contains(metadataFields, field) {
		return ""
	}
	text := fmt.Sprintf("metadata has no field %s", field)
	if meant := engine.Nearest(field, slices.Values(metadataFields)); meant != "" {
		text += fmt.Sprintf("; did you mean %s?", meant)
	}
	return text
}
