package output_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

func newPrinter(t *testing.T, format string, o output.Options) output.Printer {
	t.Helper()
	p, err := output.New(format, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTeeShowsARunToEveryPrinter(t *testing.T) {
	var names, table bytes.Buffer
	p := output.Tee(newPrinter(t, output.Name, output.Options{Out: &names}), newPrinter(t, output.Table, output.Options{Out: &table}))
	if err := errors.Join(p.Print(podChange("web", "x")), p.Close(engine.Summary{Objects: 1})); err != nil {
		t.Fatal(err)
	}
	if names.String() != "pod/web\n" || !strings.Contains(table.String(), "pod/web") || !strings.Contains(table.String(), "1 object evaluated") {
		t.Errorf("got %q and %q", names.String(), table.String())
	}
}

// broken is a printer that can do nothing.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Print(engine.Change) error  { return errBroken }
func (broken) Close(engine.Summary) error { return errBroken }

func TestTeeClosesAllWhateverBecomesOfOne(t *testing.T) {
	var out bytes.Buffer
	p := output.Tee(broken{}, newPrinter(t, output.Summary, output.Options{Out: &out}))
	if err := p.Print(podChange("web", "x")); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if err := p.Close(engine.Summary{Objects: 1}); !errors.Is(err, errBroken) || !strings.Contains(out.String(), "1 object evaluated") {
		t.Errorf("got %v and %q", err, out.String())
	}
}

// A run that breaks off has shown what it saw.
func TestFlushShowsWhatIsHeldBack(t *testing.T) {
	var out bytes.Buffer
	p := output.Tee(newPrinter(t, output.Name, output.Options{Out: &bytes.Buffer{}}), newPrinter(t, output.Diff, output.Options{Out: &out}))
	if err := p.Print(podChange("web", "x")); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Fatalf("shown at once: %q", out.String())
	}
	if err := output.Flush(p); err != nil || !strings.HasPrefix(out.String(), "~ Pod shop/web  (4 fields)\n") {
		t.Errorf("got %v and %q", err, out.String())
	}
}

// Many different changes are shown in parts, and the summary says so.
func TestWhatIsHeldBackIsBounded(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(t, output.Diff, output.Options{Out: &out, ShowSecrets: true})
	for i := range 40 {
		value := strings.Repeat("x", 1<<18) + string(rune('a'+i))
		if err := p.Print(podChange("web", value)); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() == 0 {
		t.Error("10 MB are held back")
	}
	if err := p.Close(engine.Summary{Objects: 40}); err != nil || !strings.Contains(out.String(), "put together in parts") {
		t.Errorf("got %v; the summary does not say that there are parts", err)
	}
}
