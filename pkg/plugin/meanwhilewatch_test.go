package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// meanwhileWatch is what an apply-existing --watch is told of a meanwhileServer, and what it has shown.
type meanwhileWatch struct {
	mu      sync.Mutex
	out     bytes.Buffer
	streams map[string][]string // events of a resource
	more    chan struct{}       // closed when there are more
	end     context.CancelFunc
	unshown []string // lines that were written before they were shown

	begun bool // the changes are told
	first int  // byte that was shown then
	tells bool // what others do is told as well
}

// Write shows something.
func (w *meanwhileWatch) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(text)
}

// shown is what was shown since the changes are told.
func (w *meanwhileWatch) shown() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()[w.first:]
}

// tell sends an event.
func (w *meanwhileWatch) tell(resource, kind string, object any) {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams[resource] = append(w.streams[resource], string(text)+"\n")
	close(w.more)
	w.more = make(chan struct{})
}

// serve answers a watch with all that is told from then on.
func (w *meanwhileWatch) serve(out http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	out.WriteHeader(http.StatusOK)
	for sent := 0; ; {
		_ = http.NewResponseController(out).Flush()
		w.mu.Lock()
		events, more := w.streams[resource][sent:], w.more
		w.mu.Unlock()
		for _, e := range events {
			fmt.Fprint(out, e)
		}
		if sent += len(events); len(events) > 0 {
			continue
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// watchBegins changes the objects that a watch found in order, and tells it.
func (s *meanwhileServer) watchBegins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.watched.begun = nil, true
	s.watched.first = len(s.watched.shown())
	s.change("a", map[string]any{"level": "debug"})
	s.change("b", map[string]any{"level": "debug", "old": "1"})
	delete(s.objects["b"]["metadata"].(map[string]any), "finalizers")
	s.change("c", map[string]any{"level": "info", "other": "2"})
	for _, name := range []string{"a", "b", "c"} {
		s.watched.tell("configmaps", "MODIFIED", s.objects[name])
	}
}

// tellLast changes one more object, which ends the watch, when the events of watchBegins are evaluated: so it is evaluated after them.
func (s *meanwhileServer) tellLast() {
	if s.watched == nil || len(s.requests) > 1 {
		return
	}
	s.change("z", map[string]any{"done": "no"})
	s.watched.tell("configmaps", "MODIFIED", s.objects["z"])
}

// serveWatched notes what is written before it was shown.
func (s *meanwhileServer) serveWatched(out http.ResponseWriter, r *http.Request) {
	w := s.watched
	shown := shownLines(w.shown())
	s.mu.Lock()
	before := len(s.writes)
	s.mu.Unlock()
	s.tamperedServer.ServeHTTP(out, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.writes[before:] {
		if w.begun && !slices.Contains(shown, strings.ReplaceAll(line, s.secret, "***")) {
			w.unshown = append(w.unshown, line)
		}
		name, _, _ := strings.Cut(line, " ")
		if w.tells {
			w.tell("configmaps", "MODIFIED", s.objects[name])
		}
		if name == "z" {
			w.end()
		}
	}
}

// change gives a ConfigMap other data.
func (s *meanwhileServer) change(name string, data map[string]any) {
	s.edit(name, "", "", "")
	s.objects[name]["data"] = data
}

// told is s.act, and what others did is told.
func (s *meanwhileServer) told(act func()) {
	objects, policy := maps.Clone(s.objects), s.policy
	act()
	for name, before := range objects {
		switch now := s.objects[name]; {
		case now == nil:
			s.watched.tell("configmaps", "DELETED", before)
		case fmt.Sprint(now["metadata"]) != fmt.Sprint(before["metadata"]):
			s.watched.tell("configmaps", "MODIFIED", now)
		}
	}
	if s.policy != policy && s.policy != "" {
		s.policy = strings.Replace(s.policy, `"resourceVersion": "1"`, `"resourceVersion": "2"`, 1)
		s.watched.tell("clusterpolicies", "MODIFIED", json.RawMessage(s.policy))
	}
}

// watch runs an apply-existing --watch on objects that are in order, and changes them then. It ends when the change of one more object, z,
// which is made while the others are evaluated, is written.
func (s *meanwhileServer) watch(t *testing.T, kubeconfig string, settled map[string]map[string]any, tells bool, at int, act func()) (code int, text string) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), time.Minute) // within which it ends long before
	defer end()
	w := &meanwhileWatch{streams: map[string][]string{}, more: make(chan struct{}), end: end, tells: tells}
	if tells && act != nil {
		does := act
		act = func() { s.told(does) }
	}
	s.begin(settled, at, act)
	s.watched = w
	var errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: w, ErrOut: &errOut}
	begins := sync.OnceFunc(s.watchBegins)
	streams.ErrOut = writerFunc(func(text []byte) (int, error) {
		if strings.Contains(string(text), "Watching ") {
			defer begins()
		}
		return errOut.Write(text)
	})
	args := []string{"apply-existing", "configmaps", "-n", "shop", "--from-cluster", "--yes", "--watch", "-o", "diff", "--color=never", "--concurrency=1", "--on-error=continue", "--kubeconfig", kubeconfig}
	code = plugin.Run(ctx, plugin.NewCommand("kubectl mutate", streams), args, streams)
	text = w.shown() + errOut.String()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("the watch has not come to its end:\n%s\n%q", text, s.requests)
	}
	return code, text
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

// TestWhatChangesWhileEventsAreWritten is TestWhatChangesBeforeEachRequest for what a watch writes because of events, whether what others do
// is told to the watch or not yet.
func TestWhatChangesWhileEventsAreWritten(t *testing.T) {
	tier.NotShort(t)
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	s, kubeconfig := newMeanwhile(t, dir)
	s.reset()
	settled := maps.Clone(s.objects)
	for name, data := range map[string]map[string]any{
		"a": {"level": "info", "copied": "of " + tamperedSecret, "tier": "gold"},
		"b": {"level": "info", "from": "1", "tier": "gold"},
		"z": {"done": "yes"},
	} {
		metadata := map[string]any{"name": name, "namespace": "shop", "uid": "u-" + name, "resourceVersion": "7"}
		settled[name] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
	}
	if _, text := s.watch(t, kubeconfig, settled, false, -1, nil); len(s.writes) != 12 {
		t.Fatalf("%q:\n%s", s.writes, text)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}       // of lines that were written
	slots := make(chan struct{}, 16) // a watch waits most of its time
	s.eachMeanwhile(slices.Clone(s.requests), func(at int, what string) {
		for _, tells := range []bool{false, true} {
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				s, kubeconfig := newMeanwhile(t, t.TempDir())
				_, text := s.watch(t, kubeconfig, settled, tells, at, func() { s.meanwhiles()[what]() })
				name := fmt.Sprintf("%s before request %d, told: %t", what, at, tells)
				if len(s.watched.unshown) > 0 {
					t.Errorf("%s: %q was written and not shown", name, s.watched.unshown)
				}
				s.check(t, name, shownLines(text), text)
				mu.Lock()
				counts[fmt.Sprintf("%d lines, told: %t", len(s.writes), tells)]++
				mu.Unlock()
				if !tells {
					s.checkNotAgain(t, name, what)
				}
			})
		}
	})
	group.Wait()
	t.Log(counts)
}
