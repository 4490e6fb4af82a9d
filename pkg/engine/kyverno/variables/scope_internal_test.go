package variables

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// A value that is set time and again, such as an object that changes, is kept once, and that of the scope above stays.
func TestSetLateKeepsOneValue(t *testing.T) {
	above := NewScope(nil, engine.Limits{})
	above.Set("a", "above")
	s := above.Child()
	for range 3 {
		s.SetLate("a", func() any { return "below" })
	}
	if s.head.prev != above.head {
		t.Error("it keeps values that nothing reads")
	}
	for scope, want := range map[*Scope]any{above: "above", s: "below"} {
		if got, found, err := scope.lookup("a"); got != want || !found || err != nil {
			t.Errorf("%v, %t, %v; want %v", got, found, err, want)
		}
	}
}
