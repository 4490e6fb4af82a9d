package watch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

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
