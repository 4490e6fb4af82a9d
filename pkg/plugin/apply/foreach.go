package apply

import "sync"

// ForEach calls do for every number below n, with a number of workers, and passes each
// result to take: one after the other and in order. When take returns that it is
// enough, or do fails, no further number is started; those that were started are
// finished and passed on. So take always gets the first numbers, without a gap.
//
// A cancelled context does not stop it; do has to.
func ForEach[R any](n, workers int, do func(i int) (R, error), take func(i int, r R) (enough bool)) error {
	e := forEach[R]{n: n, do: do, done: map[int]R{}, take: take}
	var group sync.WaitGroup
	for range min(max(workers, 1), n) {
		group.Go(e.work)
	}
	group.Wait()
	return e.err
}

// forEach is what the workers share.
type forEach[R any] struct {
	do   func(int) (R, error)
	take func(int, R) bool

	mu      sync.Mutex
	n       int // where to stop
	started int
	taken   int
	done    map[int]R // not yet passed on, because an earlier one is missing
	err     error
}

func (e *forEach[R]) work() {
	for {
		i, ok := e.next()
		if !ok {
			return
		}
		r, err := e.do(i)
		e.finish(i, r, err)
	}
}

func (e *forEach[R]) next() (int, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started >= e.n {
		return 0, false
	}
	e.started++
	return e.started - 1, true
}

// finish passes on what is complete. It holds the lock meanwhile, which keeps the
// order.
func (e *forEach[R]) finish(i int, r R, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done[i] = r
	if err != nil {
		e.n = 0
		if e.err == nil {
			e.err = err
		}
	}
	for {
		r, ok := e.done[e.taken]
		if !ok {
			return
		}
		delete(e.done, e.taken)
		e.taken++
		if e.take(e.taken-1, r) {
			e.n = 0
		}
	}
}
