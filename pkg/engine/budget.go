package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// What one rule may spend on one object. It is far beyond what policies do, and low
// enough that a hostile one ends within seconds and a small part of a machine's memory.
const (
	maxSteps    = 50_000_000 // values looked at, sixteen bytes of text read
	maxBytes    = 64 << 20   // of everything that is built, whether or not it is kept
	maxDuration = 10 * time.Second
	// maxObjectDuration is for all rules on one object: it is what an API server has for a request.
	maxObjectDuration = 60 * time.Second
	// MaxObjectFields is for the fields that one rule changes on an object, and all rules together: what is known of a change
	// takes some 300 bytes.
	MaxObjectFields = 300_000
)

// lookEvery is after how many steps a Budget looks at the clock: some milliseconds.
const lookEvery = 1 << 16

// bytesPerStep is how much text is read in the time that looking at a value takes.
const bytesPerStep = 16

// Budget is what one rule may still spend on one object, in steps, in bytes that it
// builds, and in time. All that evaluates the rule shares it, so that nothing multiplies.
// It belongs to one goroutine. Its errors are a *LimitError, or that of the context.
type Budget struct {
	ctx   context.Context // a budget does not outlive its evaluation
	steps int             // left
	bytes int             // left
	look  int             // look at the clock when fewer steps are left
	least int             // the larger of look and the end of the share
	share Share
	// deadline is set at the first look, since most rules end before it. It is in the time of the object.
	deadline time.Duration
	object   *objectUse
}

// objectUse is the time that the rules on an object take, without that of others. One goroutine
// evaluates them; any may ask for the time.
type objectUse struct {
	from   time.Time
	limit  time.Duration // for all of them; 0 for a rule that is evaluated by itself
	waited atomic.Int64  // nanoseconds
	since  atomic.Int64  // when the wait began that goes on, in nanoseconds; 0 for none
}

// now is the time that was taken so far.
func (t *objectUse) now() time.Duration {
	waited, now := t.waited.Load(), int64(time.Since(t.from))
	if since := t.since.Load(); since > 0 {
		waited += now - since
	}
	return time.Duration(now - waited)
}

// over returns the limit that the rules on the object exceed together; nil for none.
func (t *objectUse) over() error {
	if t.limit > 0 && t.now() > t.limit {
		return &LimitError{What: "seconds for all rules on one object", Max: int(t.limit / time.Second)}
	}
	return nil
}

func (t *objectUse) wait(ask func()) {
	began := max(int64(time.Since(t.from)), 1)
	if !t.since.CompareAndSwap(0, began) { // within a wait
		ask()
		return
	}
	defer func() {
		t.since.Store(0)
		t.waited.Add(int64(time.Since(t.from)) - began)
	}()
	ask()
}

type objectUseKey struct{}

// ForObject returns the context for all rules on one object: what the Budgets that are made in it
// may take together is limited, since each rule may have to read what all before it have written.
func ForObject(ctx context.Context) context.Context {
	return context.WithValue(ctx, objectUseKey{}, &objectUse{from: time.Now(), limit: maxObjectDuration})
}

// Wait calls a function that waits for others, such as a server. The time that it takes does not
// count for the rules on the object that the context is for.
func Wait(ctx context.Context, ask func()) { limit.Wait(ctx, func() { useIn(ctx).wait(ask) }) }

// CheckFields returns a *LimitError if so many fields are more than rules may change on one object.
func CheckFields(n int) error {
	if n > MaxObjectFields {
		return &LimitError{What: "fields changed by all rules on one object", Max: MaxObjectFields}
	}
	return nil
}

// Taken returns how long the rules on an object have taken, without the time that they waited; for
// a context without an object, the time since the first call.
func Taken(ctx context.Context) (taken func() time.Duration) { return useIn(ctx).now }

func useIn(ctx context.Context) *objectUse {
	if t, ok := ctx.Value(objectUseKey{}).(*objectUse); ok {
		return t
	}
	return &objectUse{from: time.Now()}
}

// Share is a part of a Budget that one part of the evaluation may spend.
type Share struct {
	from, to int // the steps that are left at its beginning, and at least at its end
	limit    LimitError
}

// allSteps is the limit of a share that is the whole budget.
//
//nolint:gochecknoglobals // an immutable value
var allSteps = LimitError{What: "steps of one rule on one object", Max: maxSteps}

// NewBudget returns the budget of one rule on one object.
func NewBudget(ctx context.Context) *Budget {
	look := maxSteps - lookEvery
	object := useIn(ctx)
	if object.over() != nil {
		look = maxSteps // at the first step
	}
	return &Budget{ctx: ctx, steps: maxSteps, bytes: maxBytes, look: look, least: look, share: Share{from: maxSteps, limit: allSteps}, object: object}
}

// Begin makes the limit that of what follows, if that much is left. It returns the share
// that goes on at its End; what is spent in between does not count to that one.
func (b *Budget) Begin(limit LimitError) (outer Share) {
	outer = b.share
	b.share = Share{from: b.steps, to: b.steps - limit.Max, limit: limit}
	if b.share.to < 0 {
		b.share.to, b.share.limit = 0, allSteps
	}
	b.least = max(b.look, b.share.to)
	return outer
}

// End goes on with the share that Begin returned.
func (b *Budget) End(outer Share) {
	outer.to = max(outer.to-(b.share.from-b.steps), 0)
	b.share = outer
	b.least = max(b.look, outer.to)
}

// Spend accounts for work: a step for each value that is looked at. It is called before
// work whose extent is known, so that none is done that exceeds the budget.
func (b *Budget) Spend(steps int) error {
	if b.steps -= steps; b.steps >= b.least {
		return nil
	}
	return b.check()
}

// Read accounts for reading so many bytes of text.
func (b *Budget) Read(bytes int) error { return b.Spend(bytes / bytesPerStep) }

// Build accounts for the memory of something new. What is let go again counts as well.
func (b *Budget) Build(bytes int) error {
	if b.bytes -= bytes; b.bytes < 0 {
		b.bytes = 0
		return &LimitError{What: "bytes built by one rule on one object", Max: maxBytes}
	}
	return nil
}

// Spent returns the steps that were spent, and the bytes that were built.
func (b *Budget) Spent() (steps, bytes int) { return maxSteps - b.steps, maxBytes - b.bytes }

// check is where limits, time and cancellation are seen.
func (b *Budget) check() error {
	if b.steps < b.share.to {
		b.steps = max(b.steps, -1)
		limit := b.share.limit
		return &limit
	}
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if over := b.object.over(); over != nil {
		return over
	}
	now := b.object.now()
	if b.deadline == 0 {
		b.deadline = now + maxDuration
	}
	if now > b.deadline {
		return &LimitError{What: "seconds for one rule on one object", Max: int(maxDuration / time.Second)}
	}
	b.look = b.steps - lookEvery
	b.least = max(b.look, b.share.to)
	return nil
}

// Wait calls a function that waits for others, such as a server, and does not count the
// time that it takes.
func (b *Budget) Wait(ask func()) { limit.Wait(b.ctx, func() { b.object.wait(ask) }) }

// What values take in memory beside their texts.
const (
	bytesOfItem  = 16  // of a list
	bytesOfField = 64  // of a map
	bytesOfMap   = 320 // however small
)

// BuildList accounts for the memory of a list of so many items.
func (b *Budget) BuildList(items int) error { return b.Build(bytesOfItem * items) }

// BuildMap accounts for the memory of a map of so many fields.
func (b *Budget) BuildMap(fields int) error { return b.Build(bytesOfMap + bytesOfField*fields) }

// What decoding JSON or YAML takes for each value, at most: in memory while it is done, in
// memory for the result, and in time.
const (
	bytesToDecode = 200
	bytesDecoded  = 48
	stepsToDecode = 10
)

// Decode accounts for reading a text of JSON or YAML.
func (b *Budget) Decode(text string) error {
	values := 1
	for i := range len(text) {
		switch text[i] { // something stands before each value
		case '\n', '-', ':', ',', '[', '{', '?':
			values++
		}
	}
	if err := b.Spend(values*stepsToDecode + len(text)/bytesPerStep); err != nil {
		return err
	}
	if values*bytesToDecode > b.bytes {
		return b.Build(values * bytesToDecode)
	}
	return b.Build(values*bytesDecoded + len(text))
}

// Measure walks a value as if it were a tree, as whatever writes it will: a list can hold
// another so often that its text would not fit into any memory. It returns about how many
// bytes the value's JSON has.
func (b *Budget) Measure(value any) (int, error) {
	total, bytes := 8, 0
	switch v := value.(type) {
	case string:
		bytes = len(v)
	case []any:
		for _, item := range v {
			n, err := b.Measure(item)
			if err != nil {
				return 0, err
			}
			total += n
		}
	case map[string]any:
		for key, item := range v {
			n, err := b.Measure(item)
			if err != nil {
				return 0, err
			}
			bytes += len(key)
			total += n
		}
	}
	return total + bytes, b.Spend(1 + bytes/bytesPerStep)
}

// What compiling a value into a patch takes for each value in it: in memory while the patch is used, and in time.
const (
	bytesToCompile = 240
	stepsToCompile = 10
)

// Compile accounts for making a patch of a value, which takes many times as much as the value, and is let go when it
// has been applied. A variable can put the same large value into many places of it.
func (b *Budget) Compile(value any) error {
	if _, err := b.Measure(value); err != nil { // before it is counted
		return err
	}
	values := countValues(value)
	if values*bytesToCompile > b.bytes {
		return b.Build(values * bytesToCompile)
	}
	return b.Spend(values * stepsToCompile)
}

// countValues counts a value and what is in it.
func countValues(value any) int {
	n := 1
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			n += countValues(item)
		}
	case map[string]any:
		for _, item := range v {
			n += countValues(item)
		}
	}
	return n
}

// Write accounts for a value that becomes part of an object, with everything in it.
func (b *Budget) Write(value any) error {
	size, err := b.Measure(value)
	if err != nil {
		return err
	}
	return b.Build(size)
}
