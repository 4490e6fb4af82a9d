package engine

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Reader serves objects to policies and to the evaluation. They are shared and must not be modified.
type Reader interface {
	// Get returns one object, or an error for which apierrors.IsNotFound holds.
	Get(context.Context, ObjectKey) (*unstructured.Unstructured, error)
	// List streams the objects of a selection, page by page, in a stable order. A wildcard kind stands for every
	// kind that can be listed.
	List(context.Context, Selection) iter.Seq2[*unstructured.Unstructured, error]
	// Schema returns how the server merges and compares objects of a kind; the zero value for a kind without a
	// known schema.
	Schema(context.Context, schema.GroupVersionKind) (Schema, error)
}

// Page is one part of a listing. Target decodes the i-th object on demand, so that several workers can decode
// a page side by side.
type Page interface {
	Len() int
	Target(i int) (Target, error)
}

// UnreadableError is yielded by a Source for an unreadable part of a listing, such as a resource that the
// user may not list: the run goes on with the rest and counts as incomplete. Any other error of a Source ends
// the run.
type UnreadableError struct {
	What string // "pods in namespace shop"
	Err  error
}

// Error is "cannot read WHAT: reason".
func (e *UnreadableError) Error() string { return fmt.Sprintf("cannot read %s: %v", e.What, e.Err) }

// Unwrap returns the server's error.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Source streams the objects to evaluate: in the selections of the programs and in the user's own choice
// (namespace, selector, types, names). Each object comes once, however many selections name it, in the same
// order in every run.
type Source interface {
	Pages(context.Context, []Selection) iter.Seq2[Page, error]
}

// Altered returns a source whose targets are altered by a function, in the context of their listing.
func Altered(s Source, alter func(context.Context, Target) Target) Source { return altered{s, alter} }

type altered struct {
	Source
	alter func(context.Context, Target) Target
}

// Pages implements Source.
func (s altered) Pages(ctx context.Context, selections []Selection) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for p, err := range s.Source.Pages(ctx, selections) {
			if p != nil {
				p = AlteredPage{p, func(t Target) Target { return s.alter(ctx, t) }}
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// AlteredPage is a page whose targets are altered by a function.
type AlteredPage struct {
	Page
	Alter func(Target) Target
}

// Unwrap returns the page as it was read.
func (p AlteredPage) Unwrap() Page { return p.Page }

// Target implements Page.
func (p AlteredPage) Target(i int) (Target, error) {
	t, err := p.Page.Target(i)
	if err != nil {
		return t, err
	}
	return p.Alter(t), nil
}

// ReadAhead lets produce work on the next item while the current one is used. It ends only after produce has.
func ReadAhead[T any](
	ctx context.Context, produce func(context.Context) iter.Seq2[T, error],
) iter.Seq2[T, error] {
	type result struct {
		item T
		err  error
	}
	return func(yield func(T, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		results := make(chan result) // unbuffered: the producer holds one item, no more
		defer func() {
			cancel()
			for range results { // waits for the producer to end
			}
		}()
		go func() {
			defer close(results)
			for item, err := range produce(inner) {
				select {
				case results <- result{item, err}:
				case <-inner.Done():
					return
				}
			}
		}()
		for r := range results {
			if !yield(r.item, r.err) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			var none T
			yield(none, err)
		}
	}
}

// Schema answers questions about a kind's OpenAPI schema. All fields are nil for a kind without one.
type Schema struct {
	// Types converts to structured-merge-diff's typed values: list-map keys,
	// sets and atomics, as server-side apply and CEL's ApplyConfiguration merge.
	Types managedfields.TypeConverter
	// NonNull returns Types without the types of nullable fields, which a CustomResourceDefinition can have.
	NonNull func() managedfields.TypeConverter
	// Fields knows the values that a server accepts, and the patch strategies of lists.
	Fields FieldValidator
}

// FieldValidator knows the fields of a kind and their possible values: types, enumerations and required
// fields. Further checks of a server are unknown.
type FieldValidator interface {
	// Validate returns the fields that a server would refuse, if the value stood at the path or, for nil, if
	// nothing did.
	Validate(at fieldpath.Path, value any) []InvalidField
	// ListPatch returns the patch strategies and the merge key of a list, for strategic merge; false if there is
	// no such list. An empty name on the path stands for the elements of a list.
	ListPatch(path []string) (strategies []string, key string, known bool)
}

// InvalidField is a field that a server would refuse.
type InvalidField struct {
	Path fieldpath.Path
	// Why completes a sentence about the field, without values: "has to be a boolean, and is a string".
	Why string
	// Unknown reports that the type has no such field.
	Unknown bool
	// Meant is the existing field that was probably meant; empty for none.
	Meant string
	// Allowed are the allowed values, where the field has another one.
	Allowed []any
}

// Known reports whether there is a schema at all.
func (s Schema) Known() bool { return s.Types != nil }
