package apply

import (
	"cmp"
	"sync"
)

// ForEach calls do for every number below n, with a number of workers, and passes each
// result to take: one after the other and in order. When take returns that it is
// enough, or do fails, no further number is started; those that were started are
// finished and passed on. So take always gets the first numbers, without a gap.
//
// A cancelled context does not stop it; do has to.
func ForEach[R any](n, workers int, do func(i int) (R, error), take func(i int, r R) (enough bool)) error {
	var mu sync.Mutex
	var failed error
	started, taken := 0, 0
	done := map[int]R{} // not yet passed on, because an earlier one is missing
	var group sync.WaitGroup
	for range min(max(workers, 1), n) {
		group.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for started < n {
				i := started
				started++
				mu.Unlock()
				r, err := do(i)
				mu.Lock()
				done[i] = r
				if err != nil {
					n, failed = 0, cmp.Or(failed, err)
				}
				for r, ok := done[taken]; ok; r, ok = done[taken] {
					delete(done, taken)
					if taken++; take(taken-1, r) {
						n = 0
					}
				}
			}
		})
	}
	group.Wait()
	return failed
}
