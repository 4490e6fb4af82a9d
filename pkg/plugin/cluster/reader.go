package cluster

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Get reads one object, or the subresource that the key names, from the server
// itself. A kind that the server does not serve is a meta.NoKindMatchError.
func (c *Client) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	segments, err := c.pathOf(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.object(do(ctx, http.MethodGet, c.rest.Get().AbsPath(segments...)))
}

// Patch is one PATCH request.
type Patch struct {
	Type         types.PatchType
	Body         []byte
	FieldManager string
	// Force takes over fields of other managers; only for types.ApplyPatchType.
	Force bool
	// DryRun asks the server for its answer without storing it.
	DryRun bool
}

// Patch sends one PATCH with strict field validation, once, and returns the
// server's answer.
func (c *Client) Patch(ctx context.Context, key engine.ObjectKey, p Patch) (*unstructured.Unstructured, error) {
	segments, err := c.pathOf(ctx, key)
	if err != nil {
		return nil, err
	}
	request := c.rest.Patch(p.Type).AbsPath(segments...).Body(p.Body).MaxRetries(0).
		Param("fieldValidation", metav1.FieldValidationStrict)
	if p.FieldManager != "" {
		request.Param("fieldManager", p.FieldManager)
	}
	if p.Force && p.Type == types.ApplyPatchType {
		request.Param("force", "true")
	}
	if p.DryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	return c.object(do(ctx, http.MethodPatch, request))
}

// Create sends a new object, which may leave its name to the server.
func (c *Client) Create(ctx context.Context, u *unstructured.Unstructured) error {
	key := engine.KeyOf(u)
	r, err := c.resource(ctx, key)
	if err != nil {
		return err
	}
	key.Name = cmp.Or(key.Name, u.GetGenerateName())
	if _, err := objectPath(r, key); err != nil { // a name or namespace that reaches elsewhere
		return err
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	request := c.rest.Post().AbsPath(collectionPath(r, key.Namespace)...).Body(body).
		SetHeader("Content-Type", runtime.ContentTypeJSON)
	_, err = do(ctx, http.MethodPost, request)
	return err
}

func (c *Client) object(body []byte, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	item, err := ReadRawItem(body)
	if err != nil {
		return nil, err
	}
	content, err := item.Decode()
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// List streams what a selection names, kind by kind in order of group and
// resource, each in the preferred version that the selection allows. A kind
// that is named plainly and not served is a meta.NoKindMatchError.
func (c *Client) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		resources, err := c.listable(ctx, s)
		if err != nil {
			yield(nil, err)
			return
		}
		seen := map[string]bool{} // objects that two kinds share, and what an expired listing repeats
		for _, r := range resources {
			for page, err := range c.list(ctx, r, queryOf(s)) {
				if err != nil {
					yield(nil, fmt.Errorf("list %s: %w", r.mapping.Resource.GroupResource(), err))
					return
				}
				if !yieldItems(page.Items, r, s, seen, yield) {
					return
				}
			}
		}
	}
}

func yieldItems(
	items []RawItem, r *resource, s engine.Selection, seen map[string]bool, yield func(*unstructured.Unstructured, error) bool,
) bool {
	for _, item := range items {
		if !open(s.Namespace, item.Namespace) || !open(s.Name, item.Name) || (item.UID != "" && seen[item.UID]) {
			continue
		}
		seen[strings.Clone(item.UID)] = true // not the page that it was cut from
		u, err := decode(item, r)
		if !yield(u, err) || err != nil {
			return false
		}
	}
	return true
}

// listable finds the resources that a selection names.
func (c *Client) listable(ctx context.Context, s engine.Selection) ([]*resource, error) {
	if !selector.HasWildcard(s.Group) && !selector.HasWildcard(s.Kind) && !selector.HasWildcard(s.Version) {
		key := engine.ObjectKey{Version: s.Version}
		key.Group, key.Kind = s.Group, s.Kind
		r, err := c.resource(ctx, key)
		if err != nil {
			return nil, err
		}
		if !r.listable {
			return nil, apierrors.NewMethodNotSupported(r.mapping.Resource.GroupResource(), "list")
		}
		if s.Namespace != "" && !selector.HasWildcard(s.Namespace) && !r.namespaced() {
			return nil, nil
		}
		return []*resource{r}, nil
	}
	cat, err := c.served(ctx, false)
	if err != nil {
		return nil, err
	}
	return cat.kinds(func(versions []*resource) *resource {
		for _, r := range versions {
			gvk := r.mapping.GroupVersionKind
			named := selector.MatchWildcard(s.Group, gvk.Group) && selector.MatchWildcard(s.Kind, gvk.Kind) && open(s.Version, gvk.Version)
			named = named && s.MatchesResource(r.mapping.Resource.Resource)
			if named && r.listable && (r.namespaced() || open(s.Namespace, "")) {
				return r
			}
		}
		return nil
	}), nil
}

// queryOf is what the server can select by itself.
func queryOf(s engine.Selection) query {
	var q query
	if !selector.HasWildcard(s.Namespace) {
		q.namespace = s.Namespace
	}
	if s.Name != "" && !selector.HasWildcard(s.Name) {
		q.fields = "metadata.name=" + s.Name
	}
	if l := s.Labels; l != nil && len(l.MatchLabels)+len(l.MatchExpressions) > 0 { // one of everything has no text
		q.labels = metav1.FormatLabelSelector(l)
	}
	return q
}

func open(pattern, text string) bool { return pattern == "" || selector.MatchWildcard(pattern, text) }
