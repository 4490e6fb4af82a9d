package engine

import "testing"

// Answers that are large take no more memory than small ones: the oldest are dropped, but
// never the last one.
func TestAnswersAreBounded(t *testing.T) {
	var a answers
	for i := range 10 {
		a.keep(i, i, nil, maxAnswers/4)
	}
	for i := range 10 {
		if _, err := a.to(i); (err == nil) != (i >= 6) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	a.keep("large", "one", nil, 2*maxAnswers)
	if _, err := a.to("large"); err != nil || len(a.order) != 1 {
		t.Errorf("a large answer: %v, and %d others", err, len(a.order)-1)
	}
	for range 3 {
		a.keep("large", "one", nil, 1) // replaced, not added
	}
	if a.size != 1 {
		t.Errorf("size %d", a.size)
	}
	for i := range 2 * maxMemo {
		a.keep(i, i, nil, 1)
		a.keep("again", "and again", nil, 1)
		if _, err := a.to(i); err != nil {
			t.Fatalf("answer %d is dropped for an older one", i)
		}
	}
	if _, err := a.to("again"); err != nil {
		t.Error("what is asked again and again is dropped")
	}
	if len(a.given) != maxMemo || len(a.order) != maxMemo {
		t.Errorf("%d answers are kept", len(a.given))
	}
}
