package transport_test

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// TestDecodedSizeIsAnUpperBound decodes what takes much memory, and compares.
func TestDecodedSizeIsAnUpperBound(t *testing.T) {
	repeat := func(part string, n int) string { return "[" + strings.Repeat(part+",", n-1) + part + "]" }
	for name, text := range map[string]string{
		"numbers":        repeat("1", 500_000),
		"large numbers":  repeat("12345", 200_000),
		"floats":         repeat("0.5", 200_000),
		"empty objects":  repeat("{}", 100_000),
		"empty arrays":   repeat("[]", 100_000),
		"small objects":  repeat(`{"a":1}`, 100_000),
		"small arrays":   repeat(`[1]`, 100_000),
		"strings":        repeat(`"a"`, 200_000),
		"quoted braces":  repeat(`"[{,\"[{,"`, 100_000),
		"nested objects": strings.Repeat(`{"":`, 5_000) + "1" + strings.Repeat("}", 5_000),
		"large objects":  repeat(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1}`, 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(v)
			took := int(after.HeapAlloc) - int(before.HeapAlloc)
			if got := transport.DecodedSize([]byte(text)); got < took {
				t.Errorf("%d bytes of text take %d when decoded, and were counted as %d", len(text), took, got)
			} else {
				t.Logf("%d bytes of text take %d when decoded, and were counted as %d", len(text), took, got)
			}
		})
	}
}

func BenchmarkDecodedSize(b *testing.B) {
	pod, err := os.ReadFile("../cluster/testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	text := bytes.Repeat(pod, 500)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		transport.DecodedSize(text)
	}
}
