package engine_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The hash is a promise: a shard that is retried, by another version too, has the same objects.
func TestShardOfANamespaceStaysTheSame(t *testing.T) {
	for name, want := range map[string]int{"": 5, "default": 14, "kube-system": 14, "shop": 9, "\u00e9": 1} { // computed by another program
		for i := range 16 {
			if got := (engine.Shard{Index: i, Of: 16}).Has(name, "any"); name != "" && got != (i == want) {
				t.Errorf("%q is in shard %d/16: %t", name, i, got)
			}
			if got := (engine.Shard{Index: i, Of: 16}).Has("", name); got != (i == want) {
				t.Errorf("the cluster-scoped object %q is in shard %d/16: %t", name, i, got)
			}
		}
	}
}

func TestShardText(t *testing.T) {
	for _, text := range []string{"0/1", "0/4", "3/4", "99999/100000"} {
		var s engine.Shard
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%q is %q, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "/", "1", "4/4", "-1/4", "0/0", "1/", "/1", "0/4/4", "a/b", "0/100001", "+0/4", "0x0/4", "$(JOB_COMPLETION_INDEX)/4", "0/99999999999999999999"} {
		s := engine.Shard{Index: 1, Of: 2}
		err := s.UnmarshalText([]byte(text))
		if err == nil || s != (engine.Shard{Index: 1, Of: 2}) {
			t.Errorf("%q is %q, %v", text, s, err)
		}
	}
	if s := (engine.Shard{}); s.String() != "" || !s.Whole() || !s.Has("shop", "web") {
		t.Errorf("the zero value is %q", s)
	}
}
