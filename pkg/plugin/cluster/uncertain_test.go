package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

func TestUncertain(t *testing.T) {
	body := func(err error) error { // as client-go's rest package wraps it
		return fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", err)
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":               {nil, false},
		"refused":            {apierrors.NewBadRequest("no"), false},
		"in trouble":         {apierrors.NewInternalError(errors.New("etcd")), true},
		"cut short":          {body(io.ErrUnexpectedEOF), true},
		"connection closed":  {body(errors.New("http2: client connection force closed via ClientConn.Close")), true},
		"connection lost":    {body(errors.New("http2: client connection lost")), true},
		"given up":           {body(&transport.LimitError{}), true},
		"an answer of sorts": {body(errors.New("bad text")), false},
	} {
		if got := cluster.Uncertain(t.Context(), test.err); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
	for name, err := range map[string]error{"no object": &cluster.AnswerError{Err: errors.New("HTML")}, "a redirect": &transport.RedirectError{}} {
		if cluster.Uncertain(t.Context(), err) || !cluster.Unsettled(t.Context(), fmt.Errorf("ConfigMap c: %w", err)) {
			t.Errorf("%s: it leaves open what became of a write, and of nothing else", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if cluster.Uncertain(ended, io.EOF) || cluster.Unsettled(ended, &cluster.AnswerError{Err: io.EOF}) {
		t.Error("what is uncertain does not matter when the run is over")
	}
}
