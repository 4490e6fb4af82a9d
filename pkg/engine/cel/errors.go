package cel

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AtomicError is an apply configuration that holds values which can only be
// replaced as a whole.
type AtomicError struct{ Paths []string }

// Error is the server's text, and the way out.
func (e *AtomicError) Error() string {
	return "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: " + strings.Join(e.Paths, ", ") +
		" (a JSONPatch mutation can)"
}

// NoSchemaError is a kind whose lists and maps nobody knows how to merge.
type NoSchemaError struct{ Kind schema.GroupVersionKind }

// Error names the kind, and the way out.
func (e *NoSchemaError) Error() string {
	return fmt.Sprintf("an apply configuration cannot be merged without the schema of %s, and a guess could lose data: "+
		"none is published or built in; for files, give its CustomResourceDefinition with -f or --world", kindText(e.Kind))
}

// kindText is a kind as messages name it: "apps/v1 Deployment".
func kindText(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}
