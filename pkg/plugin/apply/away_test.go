package apply_test

import (
	"context"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// leaving is a server that goes away with the write of an object.
type leaving struct {
	*server
	with   string // the name of the object
	stores bool   // the write, whose answer is lost
	away   bool
}

var errAway = &url.Error{Op: "Patch", URL: "https://server", Err: io.ErrUnexpectedEOF}

func (s *leaving) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	if s.away {
		return nil, errAway
	}
	return s.server.Get(ctx, key)
}

func (s *leaving) Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	if !p.DryRun && key.Name == s.with {
		if s.away = true; s.stores {
			if _, err := s.server.Patch(ctx, key, p); err != nil {
				return nil, err
			}
		}
	}
	if s.away {
		return nil, errAway
	}
	return s.server.Patch(ctx, key, p)
}

// A run that outlasts the absence of its server finds out what became of the writes that were in flight.
func TestExecutorOutlastsTheAbsenceOfItsServer(t *testing.T) {
	for name, c := range map[string]struct {
		stores  bool
		results outcomes
		status  []journal.Status
	}{
		"stored":     {true, outcomes{"a applied", "b applied", "c not-tried"}, []journal.Status{journal.Done, journal.Done, journal.Planned}},
		"not stored": {false, outcomes{"a applied", "b not-tried", "c not-tried"}, []journal.Status{journal.Done, journal.InDoubt, journal.Planned}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &leaving{server: newServer(t, all()...), with: "b", stores: c.stores}
			x := newTrial(s.server)
			x.Writer.Server, x.Writer.Retry = s, wait.Backoff{Steps: 2}
			path := filepath.Join(t.TempDir(), "journal")
			x.Journal = func() (*journal.Writer, error) { return newJournal(path, x) }
			waits := 0
			x.Away = func(context.Context, error) bool {
				waits++
				s.away = waits < 3
				return true
			}
			if _, err := x.Run(t.Context(), tasks(all()...)); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(c.results, x.results); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
			if n := len(slices.DeleteFunc(slices.Clone(s.writes), func(name string) bool { return name != "b" })); n != map[bool]int{true: 1}[c.stores] {
				t.Errorf("b was written %d times", n)
			}
			j, err := journal.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			var status []journal.Status
			for i := range j.Entries {
				status = append(status, j.Entries[i].Status())
			}
			if diff := cmp.Diff(c.status, status); diff != "" || waits != 3 {
				t.Errorf("%d waits, the journal has -want +got:\n%s", waits, diff)
			}
		})
	}
}
