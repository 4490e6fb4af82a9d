package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestBudgetSteps(t *testing.T) {
	b := NewBudget(t.Context())
	if err := b.Spend(maxSteps); err != nil {
		t.Errorf("the last step: %v", err)
	}
	for range 2 {
		if err, want := b.Spend(1), "reached the limit of 50000000 steps of one rule on one object"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// What is spent in a share counts to the whole, but not to the share around it.
func TestBudgetShares(t *testing.T) {
	b, limit := NewBudget(t.Context()), LimitError{What: "steps in a part", Max: 100}
	whole := b.Begin(limit)
	spend := func(steps int, want string) {
		t.Helper()
		switch err := b.Spend(steps); {
		case want == "" && err != nil:
			t.Errorf("%d steps: %v", steps, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%d steps: error %v, want %s", steps, err, want)
		}
	}
	spend(60, "")
	outer := b.Begin(limit)
	spend(100, "")
	spend(1, "100 steps in a part")
	b.End(outer)
	spend(40, "")
	spend(1, "100 steps in a part")
	b.End(whole)
	spend(maxSteps-202, "")
	whole = b.Begin(limit)
	spend(1, "steps of one rule")
	b.End(whole)
	spend(1, "steps of one rule")
}

// A series of small shares does not keep the clock from being looked at.
func TestBudgetTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b, looks := NewBudget(ctx), 0
	series := func() error {
		for range 2 * lookEvery {
			outer := b.Begin(LimitError{What: "steps in a part", Max: 100})
			err := b.Spend(1)
			b.End(outer)
			if err != nil {
				return err
			}
			looks++
		}
		return nil
	}
	if err := series(); err != nil || b.deadline == 0 {
		t.Fatalf("error %v, deadline %v", err, b.deadline)
	}
	b.object.from = time.Now().Add(-time.Minute)
	b.object.waited.Store(int64(time.Minute))
	if err := series(); err != nil {
		t.Errorf("waiting for a server counts: %v", err)
	}
	b.object.waited.Store(0)
	var limit *LimitError
	if err := series(); !errors.As(err, &limit) || limit.What != "seconds for one rule on one object" {
		t.Errorf("error %v, want the limit of seconds", err)
	}
	cancel()
	if err := series(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// Rules that are cheap by themselves are not when there are many: those that are left fail.
func TestBudgetOfAnObject(t *testing.T) {
	ctx := ForObject(t.Context())
	first := NewBudget(ctx)
	if err := first.Spend(2 * lookEvery); err != nil {
		t.Error(err)
	}
	first.object.from = time.Now().Add(-2 * maxObjectDuration)
	first.object.waited.Store(int64(2 * maxObjectDuration))
	waited := first.object.waited.Load()
	Wait(ctx, func() { first.Wait(func() { time.Sleep(time.Millisecond) }) })
	if first.object.waited.Load() < waited+int64(time.Millisecond) || first.object.since.Load() != 0 {
		t.Error("the time of a wait is not known")
	}
	if err := first.Spend(2 * lookEvery); err != nil {
		t.Errorf("waiting for a server counts: %v", err)
	}
	first.object.waited.Store(0)
	const want = "reached the limit of 60 seconds for all rules on one object"
	for name, b := range map[string]*Budget{"the rule that runs": first, "another rule": NewBudget(ctx)} {
		for range 2 {
			if err := b.Spend(2 * lookEvery); err == nil || err.Error() != want {
				t.Errorf("%s: error %v, want %s", name, err, want)
			}
		}
	}
	if err := NewBudget(ctx).Spend(1); err == nil || err.Error() != want {
		t.Errorf("the first step: error %v, want %s", err, want)
	}
	if err := NewBudget(ForObject(ctx)).Spend(1); err != nil {
		t.Errorf("another object: %v", err)
	}
}

func TestBudgetBytes(t *testing.T) {
	b := NewBudget(t.Context())
	if err := b.Write(strings.Repeat("a", maxBytes-8)); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err, want := b.BuildList(1), "reached the limit of 67108864 bytes built by one rule on one object"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// What is compiled takes memory for as long as it is used: what does not fit is refused, and what fits leaves as much
// for the next.
func TestBudgetCompile(t *testing.T) {
	b := NewBudget(t.Context())
	list := make([]any, 100_000)
	for range 3 {
		if err := b.Compile(list); err != nil {
			t.Fatal(err)
		}
	}
	if steps, bytes := b.Spent(); steps < 3*stepsToCompile*len(list) || bytes > 0 {
		t.Errorf("spent %d steps and %d bytes", steps, bytes)
	}
	var limit *LimitError
	if err := b.Compile(map[string]any{"a": list, "b": list, "c": list}); !errors.As(err, &limit) || limit.Max != maxBytes {
		t.Errorf("a value that becomes too large: %v", err)
	}
}
