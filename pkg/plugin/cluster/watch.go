package cluster

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// watchTime is the requested duration of one watch. It is shorter than the transport's limit for a response.
const watchTime = 5 * time.Minute

// Watched is a resource, or the part of it that a Source would read, to list and then watch. Unlike a Source
// it ignores label selectors: an object that gains or loses labels is neither created nor deleted.
type Watched struct {
	client *Client
	kind   chosenKind
	query  query
}

// WatchEvent is a change of a Watched.
type WatchEvent struct {
	Type watch.EventType // Added, Modified, Deleted, or Bookmark for only a new version
	// Object is the last state of a deleted object. It must not be changed.
	Object *unstructured.Unstructured
}

// Watches returns the resources that Source would read for selections. It also returns an
// *engine.UnreadableError for each group of unknown kinds, and for each kind without watches. The last error
// is one that would end a Source.
func (c *Client) Watches(ctx context.Context, scope engine.Scope,
	selections []engine.Selection,
) ([]*Watched, []error, error) {
	s := &source{client: c, scope: scope}
	kinds, unknown, err := s.choose(ctx, selections)
	if err != nil {
		return nil, nil, err
	}
	var out []*Watched
	for _, k := range kinds {
		if !k.watchable {
			unknown = append(unknown, &engine.UnreadableError{
				What: "changes of " + k.mapping.Resource.GroupResource().String(),
				Err:  errors.New("the server does not let them be watched"),
			})
			continue
		}
		for _, q := range s.queries(k) {
			q = q.selecting(q.name)
			q.labels = ""
			out = append(out, &Watched{client: c, kind: k, query: q})
		}
	}
	return out, unknown, nil
}

// PolicyWatches returns the resources that PolicyDocuments reads.
func (c *Client) PolicyWatches(ctx context.Context,
	role func(schema.GroupKind) engine.Role,
) ([]*Watched, error) {
	served, err := c.served(ctx)
	if err != nil {
		return nil, err
	}
	var out []*Watched
	for _, r := range served.policies(role) {
		if !r.watchable {
			continue // its objects are read only once
		}
		out = append(out, &Watched{client: c, kind: chosenKind{resource: r}})
	}
	return out, nil
}

// String names the resource and the watched part: "configmaps in namespace shop (metadata.name=settings)".
func (w *Watched) String() string {
	text := w.kind.mapping.Resource.GroupResource().String()
	if w.query.namespace != "" {
		text += " in namespace " + w.query.namespace
	}
	if w.query.fields != "" {
		text += " (" + w.query.fields + ")"
	}
	return text
}

// In returns the parts in some namespaces; nil if they are no smaller than the whole.
func (w *Watched) In(namespaces []string) []*Watched {
	if w.query.namespace != "" || !w.kind.namespaced() {
		return nil
	}
	var out []*Watched
	for _, namespace := range namespaces {
		part := *w
		part.query.namespace = namespace
		out = append(out, &part)
	}
	return out
}

// Wants reports whether a selection selects an object in its state.
func (w *Watched) Wants(u *unstructured.Unstructured) bool {
	return w.kind.KindFilter == nil || w.kind.Matches(u)
}

// Mapping returns the kind and its resource in the version of reads.
func (w *Watched) Mapping() *meta.RESTMapping { return w.kind.mapping }

// List calls each with every object until that fails, and returns the version to watch from. Objects of an
// earlier page may come again.
func (w *Watched) List(ctx context.Context,
	each func(*unstructured.Unstructured) error,
) (version string, err error) {
	pages := w.client.list(ctx, w.kind.resource, w.query)
	for u, err := range w.kind.objects(pages, func(page rawList) {
		version = cmp.Or(version, page.resourceVersion) // a listing that began again may have a later version
	}) {
		if err == nil {
			err = each(u)
		}
		if err != nil {
			return "", err
		}
	}
	return version, nil
}

// Watch calls opened when the server has accepted the watch, and each with every change since a version, in
// order, until the server ends the watch, which is not an error, or each fails. For a version that is too
// old, Expired is true for the error.
//
// The server is asked to end the watch after some minutes. After a pause longer than the interval of
// bookmarks, the watch ends with the error of package transport.
func (w *Watched) Watch(ctx context.Context, version string, opened func(),
	each func(WatchEvent) error,
) error {
	request := w.client.rest.Get().AbsPath(collectionPath(w.kind.resource, w.query.namespace)...).
		Param("watch", "true").Param("allowWatchBookmarks", "true").Param("resourceVersion", version).
		Param("timeoutSeconds", strconv.Itoa(int(watchTime.Seconds())))
	if w.query.fields != "" {
		request.Param("fieldSelector", w.query.fields)
	}
	body, err := request.MaxRetries(0).Stream(transport.ForWatch(ctx))
	if err != nil {
		return permission.Forbidden(transport.Cause(err), http.MethodGet, request.URL().Path)
	}
	defer body.Close() //nolint:errcheck // it was read
	opened()
	return readEvents(body, func(e WatchEvent) error {
		if _, err := w.kind.typed(e.Object, ""); err != nil {
			return err
		}
		return each(e)
	})
}

// readEvents reads events, one per line, until the end of the body.
func readEvents(body io.Reader, each func(WatchEvent) error) error {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n') // the transport bounds its length
		switch {
		case errors.Is(err, io.EOF):
			return nil // the next watch repeats the event of a partial line
		case err != nil:
			return transport.Cause(err)
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		event, err := readEvent(line)
		if err == nil {
			err = each(event)
		}
		if err != nil {
			return err
		}
	}
}

// readEvent reads one event; an error event is the error.
func readEvent(line string) (WatchEvent, error) {
	var read struct {
		Type   watch.EventType `json:"type"`
		Object map[string]any  `json:"object"`
	}
	if err := json.Unmarshal([]byte(line), &read); err != nil {
		return WatchEvent{}, fmt.Errorf("the answer is no event of a watch: %w", err)
	}
	event := WatchEvent{Type: read.Type, Object: &unstructured.Unstructured{Object: read.Object}}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		return event, nil
	case watch.Error:
		var status metav1.Status
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, &status); err != nil {
			return event, fmt.Errorf("the answer is no event of a watch: %w", err)
		}
		return event, &apierrors.StatusError{ErrStatus: status}
	}
	return event, fmt.Errorf("the answer is no event of a watch: its type is %.40q", string(event.Type))
}

// Expired reports whether the server no longer has the changes since a version, so that the objects must be
// listed again.
func Expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// digestSeed seeds Digest.
//
//nolint:gochecknoglobals // an immutable value
var digestSeed = maphash.MakeSeed()

// Digest identifies the content of an object, without its status and the server's metadata about writes. It
// is comparable within the process.
func Digest(u *unstructured.Unstructured) uint64 {
	content := maps.Clone(diff.WithoutBookkeeping(u.Object))
	for _, field := range []string{"status", "apiVersion", "kind"} {
		delete(content, field)
	}
	text, _ := json.Marshal(content) // it was read
	return maphash.Bytes(digestSeed, text)
}
