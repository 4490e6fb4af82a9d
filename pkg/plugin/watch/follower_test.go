package watch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

// follow follows a script to its end and returns the events, what was asked of the server, and what was told.
func follow(t *testing.T, keeps bool, steps ...step) (events, asks, told []string, f *watch.Follower) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := &script{t: t, steps: steps, done: end}
		f = &watch.Follower{
			Resource: s, Report: func(err error) { told = append(told, err.Error()) },
			Emit: func(_ context.Context, e *watch.Event) error {
				text := fmt.Sprintf("%s %s=%s", e.Operation, e.Key.Name, value(e.Object))
				if old := value(e.Old); old != "" {
					text += " was " + old
				}
				events = append(events, text)
				return nil
			},
		}
		if keeps {
			f.Keeps = func(*unstructured.Unstructured) bool { return true }
		}
		if err := begin(ctx, f); err != nil {
			t.Fatal(err)
		}
		f.Run(ctx)
		asks = s.asks
	})
	return events, asks, told, f
}

// followed is what a follower makes of the answers of a server.
type followed struct {
	keeps  bool
	steps  []step
	events []string
	asks   string
	told   string
}

func TestFollower(t *testing.T) {
	for name, c := range followedCases() {
		t.Run(name, func(t *testing.T) {
			events, asks, told, _ := follow(t, c.keeps, c.steps...)
			if diff := cmp.Diff(c.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if got := strings.Join(asks, ", "); got != c.asks {
				t.Errorf("asked %s, want %s", got, c.asks)
			}
			if got := strings.Join(told, "\n"); got != c.told {
				t.Errorf("told %s, want %s", got, c.told)
			}
		})
	}
}

func followedCases() map[string]followed {
	const large = "the answer is not read"
	cut := errors.New(large)
	return map[string]followed{
		"what is there is no event": {steps: []step{{list: "a@1=x b@2=y @2"}}, asks: "list, watch 2"},
		"changes": {
			steps:  []step{{list: "a@1=x @1"}, {events: "ADDED b@2=y, MODIFIED a@3=z, DELETED b@4=y"}},
			events: []string{"CREATE b=y", "UPDATE a=z", "DELETE b=y"}, asks: "list, watch 1, watch 4",
		},
		"the state before, where it is kept": {
			keeps:  true,
			steps:  []step{{list: "a@1=x @1"}, {events: "MODIFIED a@3=z, MODIFIED a@4=u"}},
			events: []string{"UPDATE a=z was x", "UPDATE a=u was z"}, asks: "list, watch 1, watch 4",
		},
		"a change of the status is none": {
			steps: []step{{list: "a@1=x @1"}, {events: "MODIFIED a@3=x, MODIFIED a@4=x"}}, asks: "list, watch 1, watch 4",
		},
		"a bookmark is where the next watch begins": {
			steps: []step{{list: "a@1=x @1"}, {events: "BOOKMARK @9", err: io.ErrUnexpectedEOF}}, asks: "list, watch 1, watch 9",
		},
		"what comes twice is one event": {
			steps:  []step{{list: "a@1=x @1"}, {events: "MODIFIED a@3=y", err: cut}, {events: "MODIFIED a@3=y, MODIFIED a@4=z"}},
			events: []string{"UPDATE a=y", "UPDATE a=z"}, asks: "list, watch 1, watch 3, watch 4",
		},
		"an expired version is listed anew": {
			keeps: true,
			steps: []step{
				{list: "same@1=x changed@2=x gone@3=x @3"},
				{err: expired()},
				{list: "same@1=x changed@7=y new@8=z status@9=u @9"},
				{events: "DELETED new@10=z"},
			},
			events: []string{"UPDATE changed=y was x", "CREATE new=z", "CREATE status=u", "DELETE gone=x", "DELETE new=z"},
			asks:   "list, watch 3, list, watch 9, watch 10",
		},
		"no rule asks for one that is gone and was not kept": {
			steps: []step{{list: "gone@3=x other@4=x @4"}, {err: expired()}, {list: "@9"}}, asks: "list, watch 4, list, watch 9",
		},
		"what an expired listing has already": {
			keeps:  true,
			steps:  []step{{list: "a@15=y b@3=x @10"}, {events: "MODIFIED a@12=x, MODIFIED a@15=y, MODIFIED a@16=z, DELETED b@17=x"}},
			events: []string{"UPDATE a=z was y", "DELETE b=x"}, asks: "list, watch 10, watch 17",
		},
		"versions that are no numbers": {
			steps:  []step{{list: "a@y=x @y"}, {events: "MODIFIED a@x=y"}},
			events: []string{"UPDATE a=y"}, asks: "list, watch y, watch x",
		},
		"a server that ends each watch at once is told": {
			steps: []step{{list: "@1"}, {}, {}, {}}, asks: "list" + strings.Repeat(", watch 1", 4),
			told: "cannot watch configmaps, trying again: the server ends each watch at once",
		},
		"a version that has expired whenever it is watched is told": {
			steps: []step{{list: "@1"}, {err: expired()}, {list: "@1"}, {err: expired()}, {list: "@1"}, {err: expired()}, {list: "@1"}},
			asks:  "list" + strings.Repeat(", watch 1, list", 3) + ", watch 1",
			told:  "cannot watch configmaps, trying again: too old resource version: 1 (7)",
		},
		"a listing that fails is tried again": {
			steps:  []step{{list: "a@1=x @1"}, {err: expired()}, {err: cut}, {list: "a@5=y @5"}},
			events: []string{"UPDATE a=y"}, asks: "list, watch 1, list, list, watch 5",
		},
		"a server that is away is told once": {
			steps:  []step{{list: "a@1=x @1"}, {err: cut}, {err: cut}, {err: cut}, {err: cut}, {err: cut}, {events: "MODIFIED a@5=y"}},
			events: []string{"UPDATE a=y"}, asks: "list" + strings.Repeat(", watch 1", 6) + ", watch 5",
			told: "cannot watch configmaps, trying again: " + large,
		},
		"what no rule matches": {
			steps: []step{{list: "other@1=x @1"}, {events: "MODIFIED other@2=y, DELETED other@3=y, ADDED other2@4=z"}}, asks: "list, watch 1, watch 4",
		},
	}
}

// A follower that adopts what another one knows finds what is gone, however often it has to list.
func TestFollowerAdoptsAgain(t *testing.T) {
	_, _, _, before := follow(t, true, step{list: "a@1=x b@1=x @1"})
	away := errors.New("away")
	begin := func(s ...step) (got []string, err error) {
		f := &watch.Follower{Resource: &script{t: t, steps: s}, Emit: func(_ context.Context, e *watch.Event) error {
			got = append(got, string(e.Operation)+" "+e.Key.Name)
			if e.Operation == engine.OperationUpdate {
				return away
			}
			return nil
		}}
		f.Keeps = func(*unstructured.Unstructured) bool { return true }
		f.Adopt(before)
		err = begin(t.Context(), f)
		return got, err
	}
	if _, err := begin(step{list: "b@1=x a@5=y @6"}); !strings.Contains(fmt.Sprint(err), "away") {
		t.Fatal(err)
	}
	if got, err := begin(step{list: "a@1=x @7"}); err != nil || !slices.Equal(got, []string{"DELETE b"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// State tells when the server has taken a watch, and when it does not any more.
func TestFollowerState(t *testing.T) {
	cut := errors.New("cut")
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := &script{t: t, done: end, steps: []step{{list: "@1"}, {events: "ADDED a@2=x"}, {err: cut}, {err: cut}, {err: cut}, {err: cut}, {events: "ADDED b@3=x"}}}
		var got []string
		f := &watch.Follower{
			Resource: s, Report: func(error) {}, Emit: func(context.Context, *watch.Event) error { return nil },
			State: func(_ *watch.Follower, err error) { got = append(got, fmt.Sprint(err)) },
		}
		if err := begin(ctx, f); err != nil {
			t.Fatal(err)
		}
		f.Run(ctx)
		if diff := cmp.Diff([]string{"<nil>", "cut", "<nil>"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var r watch.Readiness
		var got []string
		note := func() { got = append(got, fmt.Sprint(r.Err())) }
		cut := errors.New("cut")
		s := &script{t: t, done: end, steps: []step{{list: "@1"}, {events: "ADDED a@2=x"}, {err: cut}, {err: cut}, {err: cut}, {events: "ADDED b@3=x"}}}
		f := &watch.Follower{Resource: s, Emit: func(context.Context, *watch.Event) error { note(); return nil }, Report: func(error) {}}
		note()
		r.Track([]*watch.Follower{f})
		note()
		state := f.State
		f.State = func(f *watch.Follower, err error) { state(f, err); note() }
		if err := begin(ctx, f); err != nil {
			t.Fatal(err)
		}
		f.Run(ctx)
		// Those that take its place have not begun, and it counts no more.
		r.Track([]*watch.Follower{{Resource: s}})
		state(f, nil)
		note()
		r.Track(nil)
		note()
		want := []string{
			"what is to be watched is not known yet", "configmaps: not watched yet", "<nil>", "<nil>", "configmaps: cut", "<nil>", "<nil>",
			"configmaps: not watched yet", "<nil>",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
