package engine_test

import (
	"fmt"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestDigests(t *testing.T) {
	const keys = 100_000
	d := engine.NewDigests[engine.ObjectKey]()
	key := func(i int) engine.ObjectKey { return engine.ObjectKey{Namespace: "shop", Name: fmt.Sprint("web-", i)} }
	for i := range keys {
		if d.Has(key(i)) || !d.Add(key(i)) {
			t.Fatalf("%v is there before it is added", key(i))
		}
		if !d.Has(key(i)) || d.Add(key(i)) {
			t.Fatalf("%v is not there after it is added", key(i))
		}
	}
	if d.Has(engine.ObjectKey{Namespace: "shop/web", Name: "-1"}) {
		t.Error("a key that was not added is there")
	}
}
