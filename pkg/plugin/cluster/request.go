package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// collectionPath returns the path of a resource in a namespace, or across all.
func collectionPath(r *resource, namespace string) []string {
	gvr := r.mapping.Resource
	segments := []string{"/apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		segments = []string{"/api", gvr.Version}
	}
	if r.namespaced() && namespace != "" {
		segments = append(segments, "namespaces", namespace)
	}
	return append(segments, gvr.Resource)
}

// objectPath returns the path of an object or its subresource. It checks the names, which come from policies,
// plans and journals: a slash would lead to another path, and some subresources act even on a GET.
func objectPath(r *resource, key engine.ObjectKey) ([]string, error) {
	if r.namespaced() && key.Namespace == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: namespace is missing", key))
	}
	for _, segment := range []string{key.Namespace, key.Name, key.Subresource} {
		if problems := content.IsPathSegmentName(segment); len(problems) > 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %q %s", key, segment, problems[0]))
		}
	}
	if (engine.APIPath{Subresource: key.Subresource}).HasSideEffects() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %s acts when it is read or written, and is not for this program", key, key.Subresource))
	}
	if key.Name == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: name is missing", key))
	}
	segments := append(collectionPath(r, key.Namespace), key.Name)
	if key.Subresource != "" {
		segments = append(segments, key.Subresource)
	}
	return segments, nil
}

// pathOf returns the path of the object or subresource that a key names.
func (c *Client) pathOf(ctx context.Context, key engine.ObjectKey) ([]string, error) {
	r, err := c.resource(ctx, key)
	if err != nil {
		return nil, err
	}
	return objectPath(r, key)
}

// do sends a request, retried if it is a read, and returns the body of the response. An error response is an
// API status error, wrapped in a *permission.ForbiddenError if the user lacks a permission; any other error
// means no response.
func (c *Client) do(ctx context.Context, method string, request *rest.Request) ([]byte, error) {
	var body []byte
	send := func() error {
		result := request.MaxRetries(0).Do(ctx) // only Retry repeats requests
		if err := result.Error(); err != nil {
			return permission.Forbidden(transport.Cause(err), method, request.URL().Path)
		}
		var err error
		body, err = result.Raw()
		return err
	}
	if method == http.MethodGet {
		err := c.retryRead(ctx, send)
		return body, err
	}
	err := send()
	return body, err
}

// query restricts a listing, or names one object.
type query struct{ namespace, labels, fields, name string }

// selecting returns the query for a listing of the object with a name; an empty name selects all.
func (q query) selecting(name string) query {
	if q.name = ""; name != "" {
		q.fields = strings.TrimPrefix(q.fields+",metadata.name="+name, ",")
	}
	return q
}

// list streams the pages of a listing. After the server's snapshot expires (410), some objects come twice,
// and the caller must skip them.
func (c *Client) list(ctx context.Context, r *resource, q query) iter.Seq2[rawList, error] {
	return func(yield func(rawList, error) bool) {
		l := &listing{chunk: c.chunkSize}
		for {
			body, err := c.do(ctx, http.MethodGet, c.listRequest(r, q, l))
			if l.expire(err) || l.shrink(err) {
				continue
			}
			var page rawList
			if err == nil {
				page, err = readList(body, r)
			}
			if !yield(page, err) || err != nil {
				return
			}
			l.fitting = int64(len(page.items)) * goodPage / int64(max(page.bytes, 1))
			if l.next, l.begun, l.expired = page.next, true, false; l.next == "" {
				return
			}
		}
	}
}

func (c *Client) listRequest(r *resource, q query, l *listing) *rest.Request {
	request := c.rest.Get().AbsPath(collectionPath(r, q.namespace)...)
	for name, value := range map[string]string{
		"labelSelector": q.labels, "fieldSelector": q.fields, "continue": l.next,
	} {
		if value != "" {
			request.Param(name, value)
		}
	}
	if limit := l.limit(); limit > 0 {
		request.Param("limit", strconv.FormatInt(limit, 10))
	}
	return request
}

// rawList is one page of a listing.
type rawList struct {
	items []json.RawMessage // objects, which take eight times the memory once they are decoded
	kind  string            // of the list
	// next is the token of the next page; empty on the last one.
	next string
	// resourceVersion of the listed state.
	resourceVersion string
	// remaining counts the objects on later pages; negative if unknown, as with a selector.
	remaining int64
	bytes     int
}

// readList reads a page of a resource.
func readList(body []byte, r *resource) (rawList, error) {
	var list struct {
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	list.Items = []json.RawMessage{nil} // which no JSON makes
	err := utiljson.Unmarshal(body, &list)
	if err == nil && len(list.Items) == 1 && list.Items[0] == nil {
		err = errors.New("it has no items") // otherwise it would count as an empty list
	}
	if err != nil {
		return rawList{}, fmt.Errorf("%s: the answer is no list: %w", r.mapping.Resource.GroupResource(), err)
	}
	out := rawList{
		next: list.Continue, resourceVersion: list.ResourceVersion, remaining: -1,
		bytes: len(body), items: list.Items, kind: list.Kind,
	}
	if list.RemainingItemCount != nil {
		out.remaining = *list.RemainingItemCount
	}
	if out.next == "" {
		out.remaining = 0
	}
	return out, nil
}

// objects decodes the objects of pages one after the other, after a call of begin with their page.
func (r *resource) objects(pages iter.Seq2[rawList, error], begin func(rawList),
) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			begin(page)
			for _, item := range page.items {
				u := &unstructured.Unstructured{}
				if err = utiljson.Unmarshal(item, &u.Object); err == nil {
					u, err = r.typed(u, page.kind)
				}
				if !yield(u, err) || err != nil {
					return
				}
			}
		}
	}
}

// typed gives an object of a list the type of the resource, unless it has one. An object of another kind is
// an error: discovery may describe another server, and a Secret of another name would be shown.
func (r *resource) typed(u *unstructured.Unstructured, list string) (*unstructured.Unstructured, error) {
	want := r.mapping.GroupVersionKind
	if kind := cmp.Or(u.GetKind(), strings.TrimSuffix(list, "List"), want.Kind); kind != want.Kind {
		return nil, &AnswerError{fmt.Errorf("the server answers a request for %s with another kind: %s", r.mapping.Resource.GroupResource(), kind)}
	}
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		u.SetGroupVersionKind(want)
	}
	return u, nil
}

// maxRestarts limits the restarts of a listing after expired snapshots.
const maxRestarts = 3

// sparse is the part of the first page's limit that the limits of later pages keep at least.
const sparse = 10

// listing is the position of a listing.
type listing struct {
	chunk    int64 // limit of a page; not positive for no limit
	fitting  int64 // objects in a page of about goodPage bytes
	next     string
	begun    bool
	expired  bool // at the last response
	restarts int
}

// goodPage is the size in bytes above which the next page gets a lower limit: up to three pages are in memory
// at once, besides their objects.
const goodPage = 1 << 20

// limit returns the limit of the next page; not positive for no limit.
func (l *listing) limit() int64 {
	if !l.begun {
		return l.chunk
	}
	asked := int64(defaultChunkSize)
	if l.chunk > 0 {
		asked = min(l.chunk, asked)
	}
	return min(l.chunk, max(l.fitting, asked/sparse, 1))
}

// expire reports whether a listing goes on after an error, because its snapshot has expired on the server:
// with the token in the error, otherwise from the beginning. Unlike client-go's pager it still reads pages:
// callers skip repeated objects, and a large listing in one response takes too much memory.
func (l *listing) expire(err error) bool {
	if !apierrors.IsResourceExpired(err) || l.next == "" {
		return false
	}
	token := ""
	if status, ok := err.(apierrors.APIStatus); ok {
		token = status.Status().Continue
	}
	if token == "" || l.expired { // the token did not help before
		token = ""
		if l.restarts++; l.restarts > maxRestarts {
			return false
		}
	}
	l.next, l.expired = token, true
	return true
}

// shrink makes the next pages smaller if the last one was too large to be read.
func (l *listing) shrink(err error) bool {
	if !transport.IsTooLarge(err) || l.chunk <= 1 {
		return false
	}
	l.chunk = max(1, l.chunk/10)
	return true
}

// uids holds the UIDs of earlier objects. Objects that two kinds share come again, and objects of a listing
// that began again.
type uids map[string]bool

// again reports whether an object came before, and adds it.
func (u uids) again(uid string) bool {
	known := u[uid]
	if uid != "" {
		u[uid] = true
	}
	return known
}
