package cluster

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
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
func (c *Client) pathOf(ctx context.Context, key engine.ObjectKey) ([]string, error) {
	r, err := c.resource(ctx, key)
	if err != nil {
		return nil, err
	}
	return objectPath(r, key)
}

// do sends a request, once unless it is a read, and returns the body of the answer. An error that the server
// answered is an API status error, wrapped in an *rbac.ForbiddenError if the user
// lacks a permission; any other error means that there was no answer.
func do(ctx context.Context, method string, request *rest.Request) ([]byte, error) {
	if engine.UsesSecret(ctx) { // client-go would log the URL and the errors, such as when it has waited
		ctx = klog.NewContext(ctx, logr.Discard())
	}
	var body []byte
	send := func() error {
		result := request.MaxRetries(0).Do(ctx) // what may be repeated, Retry repeats
		if err := result.Error(); err != nil {
			return rbac.Forbidden(transport.Cause(err), method, request.URL().Path)
		}
		var err error
		body, err = result.Raw()
		return err
	}
	if method == http.MethodGet {
		err := retryRead(ctx, send)
		return body, err
	}
	err := send()
	return body, err
}

// query restricts a listing, or is for the object that it names.
type query struct{ namespace, labels, fields, name string }

// selecting returns the query for a listing of the object with a name; an empty name is that of all.
func (q query) selecting(name string) query {
	if q.name = ""; name != "" {
		q.fields = strings.TrimPrefix(q.fields+",metadata.name="+name, ",")
	}
	return q
}

// list streams the pages of a listing. When the snapshot that the pages are cut
// from has expired on the server (410), the caller gets some objects twice and skips what it
// has seen.
func (c *Client) list(ctx context.Context, r *resource, q query) iter.Seq2[rawList, error] {
	return func(yield func(rawList, error) bool) {
		l := &listing{chunk: c.chunkSize}
		for {
			body, err := do(ctx, http.MethodGet, c.listRequest(r, q, l))
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
