package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// collectionPath is the path of a resource, in a namespace or across all.
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

// objectPath is the path of one object or of its subresource. Names are checked,
// since they come from policies, plans and journals: one with a slash would lead
// elsewhere, and some subresources act even when they are read.
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

// pathOf is the path of the object that a key names, or of its subresource.
func (c *Client) pathOf(ctx context.Context, key engine.ObjectKey) (*resource, []string, error) {
	r, err := c.resource(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	segments, err := objectPath(r, key)
	return r, segments, err
}

// do sends a request once and returns the body of the answer. An error that the server
// answered is an API status error, wrapped in an *rbac.ForbiddenError if the user
// lacks a permission; any other error means that there was no answer.
func do(ctx context.Context, method string, request *rest.Request) ([]byte, error) {
	if engine.UsesSecret(ctx) { // client-go would log the URL and the errors, such as when it has waited
		ctx = klog.NewContext(ctx, logr.Discard())
	}
	body, err := request.MaxRetries(0).Stream(ctx) // what may be repeated, Retry repeats
	if err != nil {
		return nil, rbac.Forbidden(transport.Cause(err), method, request.URL().Path)
	}
	text, err := textOf(body)
	return text, transport.Cause(err)
}

// query restricts a listing.
type query struct{ namespace, labels, fields string }

// list streams the pages of a listing. When the snapshot that the pages are cut
// from has expired on the server (410), the caller gets some objects twice and skips what it
// has seen.
func (c *Client) list(ctx context.Context, r *resource, q query) iter.Seq2[RawList, error] {
	return func(yield func(RawList, error) bool) {
		l := &listing{chunk: c.chunkSize}
		for {
			body, err := do(ctx, http.MethodGet, c.listRequest(r, q, l))
			if l.expire(err) || l.shrink(err) {
				continue
			}
			var page RawList
			if err == nil {
				page, err = split(body, r)
			}
			err = c.renewed(r, err)
			if !yield(page, err) || err != nil {
				return
			}
			if l.take(page); l.next == "" {
				return
			}
		}
	}
}

func (c *Client) listRequest(r *resource, q query, l *listing) *rest.Request {
	request := c.rest.Get().AbsPath(collectionPath(r, q.namespace)...)
	for _, p := range [][2]string{{"labelSelector", q.labels}, {"fieldSelector", q.fields}, {"continue", l.next}} {
		if p[1] != "" {
			request.Param(p[0], p[1])
		}
	}
	if limit := l.limit(); limit > 0 {
		request.Param("limit", strconv.FormatInt(limit, 10))
	}
	return request
}

// continueOf returns the token with which an expired listing continues.
func continueOf(err error) string {
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Continue
	}
	return ""
}

func split(body []byte, r *resource) (RawList, error) {
	page, err := SplitRawList(body)
	if err == nil {
		err = r.checkList(&page)
	}
	if err != nil {
		return RawList{}, fmt.Errorf("%s: %w", r.mapping.Resource.GroupResource(), err)
	}
	return page, nil
}

// kindError reports an answer with objects of another kind than that of the request: what is known of the server's kinds is wrong, such as where
// kubectl's cache is that of another cluster.
type kindError struct {
	want                   schema.GroupVersionKind
	gotAPIVersion, gotKind string
}

// Error names both.
func (e *kindError) Error() string {
	version, kind := e.want.ToAPIVersionAndKind()
	return fmt.Sprintf("the server answers a request for %s %s with %s", version, kind, strings.TrimSpace(e.gotAPIVersion+" "+e.gotKind))
}

// checkKind returns a *kindError for a type that is not the one of a kind. A part of it may be left out.
func checkKind(apiVersion, kind string, want schema.GroupVersionKind) error {
	if apiVersion != "" && apiVersion != want.GroupVersion().String() || kind != "" && kind != want.Kind {
		return &kindError{want, apiVersion, kind}
	}
	return nil
}

// check returns a *kindError for an object that is not of the resource's kind.
func (r *resource) check(i *RawItem) error {
	return checkKind(i.APIVersion, i.Kind, r.mapping.GroupVersionKind)
}

// checkList returns a *kindError for a list that is not of the resource's kind. Custom resources may name the kind of their lists (listKind); their
// groups have a dot, and each of their objects has a type of its own.
func (r *resource) checkList(list *RawList) error {
	want := r.mapping.GroupVersionKind
	named := want
	named.Kind += "List"
	err := checkKind(list.APIVersion, list.Kind, named)
	if err != nil && !strings.Contains(want.Group, ".") {
		return err
	}
	for i := range list.Items {
		item := &list.Items[i]
		if err != nil && (item.APIVersion == "" || item.Kind == "") {
			return err
		}
		if err := r.check(item); err != nil {
			return err
		}
	}
	return nil
}

// renewed adds to an error that what discovery's cache on disk says about a resource was wrong.
func (c *Client) renewed(r *resource, err error) error {
	var other *kindError
	if (apierrors.IsNotFound(err) || errors.As(err, &other)) && c.gone(r) {
		return fmt.Errorf("%w: the server does not have them there any more; its kinds were cached and are read again: run again", err)
	}
	return err
}

// decode decodes an item. Items of a list lack their type, which the list has.
func decode(item RawItem, r *resource) (*unstructured.Unstructured, error) {
	object, err := item.Decode()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.mapping.Resource.GroupResource(), err)
	}
	u := &unstructured.Unstructured{Object: object}
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		u.SetGroupVersionKind(r.mapping.GroupVersionKind)
	}
	return u, nil
}
