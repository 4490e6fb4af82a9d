package preview

import (
	"testing"
	"testing/synctest"
	"time"
)

// Changes of policies that come right after each evaluation are followed more and more slowly.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		begin := time.Now()
		wait := func(after time.Duration) time.Duration {
			p.evaluated()
			time.Sleep(after)
			begin = time.Now()
			if !p.wait(t.Context()) {
				t.Fatal("it ended")
			}
			return time.Since(begin)
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			if got := wait(time.Second); got != want*time.Second {
				t.Errorf("it waited %s, want %ds", got, want)
			}
		}
		if got := wait(10 * time.Second); got != time.Second {
			t.Errorf("after a while it waited %s", got)
		}
	})
}
