package redact

import (
	"fmt"
	"io"
	"sync"
)

// Warnings bounds the warnings and notes of a run of which a file or a server could cause any number. The zero value
// is ready for use. All methods are safe for concurrent use; a nil *Warnings bounds nothing.
type Warnings struct {
	mu             sync.Mutex
	out            io.Writer // where those of the run go
	shown, leftOut int
	size           int // of those that are shown
}

// maxWarnings bounds the warnings and notes of a run that are shown, and maxWarningBytes their texts together.
const (
	maxWarnings     = 1000
	maxWarningBytes = 1 << 20
)

// Writer returns a writer of such warnings and notes of one more run, each of which has to be written with one call.
// It leaves out those beyond the bounds. What was left out of the run before is told first.
func (w *Warnings) Writer(out io.Writer) io.Writer {
	if w == nil {
		return out
	}
	w.Tell()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = out
	return warningWriter{w, out}
}

// Take reports whether one more warning of so many bytes is shown, and counts it.
func (w *Warnings) Take(size int) bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shown == maxWarnings || w.size+size > maxWarningBytes {
		w.leftOut++
		return false
	}
	w.shown++
	w.size += size
	return true
}

// Tell says how many warnings and notes were left out of the run that ends.
func (w *Warnings) Tell() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leftOut > 0 {
		fmt.Fprintf(w.out, "warning: %d more warnings and notes are not shown: correct those that are, and run again; --quiet shows none\n", w.leftOut)
	}
	w.shown, w.leftOut, w.size = 0, 0, 0
}

type warningWriter struct {
	all *Warnings
	out io.Writer
}

// Write implements io.Writer.
func (w warningWriter) Write(p []byte) (int, error) {
	if !w.all.Take(len(p)) {
		return len(p), nil
	}
	return w.out.Write(p)
}
