package cluster

import (
	"bufio"
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

// watchTime is how long a server is asked to keep one watch open. It is less than the time after which the
// transport gives up an answer.
const watchTime = 5 * time.Minute

// Watched is a resource, or the part of it that a Source would read, that can be listed and then watched from
// there. Unlike a Source it leaves out no object because of its labels: one that gains or loses them is
// neither created nor deleted.
type Watched struct {
	client *Client
	kind   chosenKind
	query  query
}

// WatchEvent is a change of a Watched.
type WatchEvent struct {
	Type watch.EventType // Added, Modified, Deleted, or Bookmark for a new version and nothing else
	// Object is as it was last, if it is deleted. It must not be changed.
	Object *unstructured.Unstructured
}

// Watches returns what Source would read for selections, to be watched. Beside them it returns an
// *engine.UnreadableError for each group whose kinds are not known, and for each kind that cannot be watched.
// The error is one that ends a Source.
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

// PolicyWatches returns the resources that PolicyDocuments reads, to be watched.
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
			continue // what is installed there is read once
		}
		out = append(out, &Watched{client: c, kind: chosenKind{resource: r}})
	}
	return out, nil
}

// String names the resource, and which part of it is watched: "configmaps in namespace shop
// (metadata.name=settings)".
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

// In returns the parts of it in some namespaces; none where that is nothing else.
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

// Wants reports whether a selection selects an object as it is.
func (w *Watched) Wants(u *unstructured.Unstructured) bool {
	return w.kind.KindFilter == nil || w.kind.Matches(u)
}

// Mapping returns the kind and its resource, in the version in which it is read.
func (w *Watched) Mapping() *meta.RESTMapping { return w.kind.mapping }

// List calls each with all objects as they are, until that fails, and returns the version from which they can
// be watched. One that came on an earlier page may come again.
func (w *Watched) List(ctx context.Context,
	each func(*unstructured.Unstructured) error,
) (version string, err error) {
	for page, err := range w.client.list(ctx, w.kind.resource, w.query) {
		if err != nil {
			return "", err
		}
		if version == "" {
			version = page.resourceVersion // of later pages, where they were listed again, it may be later
		}
		for _, u := range page.items {
			if err := each(u); err != nil {
				return "", err
			}
		}
	}
	return version, nil
}

// Watch calls opened when the server has taken the watch, and each with every change since a version, in
// order, until the server ends the watch, which is not an error. An error of each ends it too. A version that
// the server does not know any more is an error for which Expired holds.
//
// The server is asked to end it after some minutes. One from which nothing comes for longer than bookmarks
// take is given up with the error of package transport.
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

// readEvents reads events, one a line. The end of the text is not an error.
func readEvents(body io.Reader, each func(WatchEvent) error) error {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n') // what comes before it is bounded by the transport
		switch {
		case errors.Is(err, io.EOF):
			return nil // a part of a line is an event that the next watch has again
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

// readEvent reads one event. That of an error is the error.
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

// Expired reports whether an error says that the server does not have the changes since a version any more,
// so that the objects have to be listed again.
func Expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// digestSeed is that of Digest.
//
//nolint:gochecknoglobals // an immutable value
var digestSeed = maphash.MakeSeed()

// Digest identifies what an object says: two states of it with the same one differ, if at all, in their
// status and in what the server notes about writes. It is comparable within the process.
func Digest(u *unstructured.Unstructured) uint64 {
	content := maps.Clone(diff.WithoutBookkeeping(u.Object))
	for _, field := range []string{"status", "apiVersion", "kind"} {
		delete(content, field)
	}
	text, _ := json.Marshal(content) // it was read
	return maphash.Bytes(digestSeed, text)
}
