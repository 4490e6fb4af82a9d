package plugin_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// watchedConfigMap is an event about a ConfigMap with a name, and what else its JSON has.
func watchedConfigMap(kind, name, version, rest string) string {
	return fmt.Sprintf(`{"type": %q, "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %s, "namespace": "default", "uid": "u-%s", "resourceVersion": %q}%s}}`,
		kind, name, version, version, rest) + "\n"
}

// hostileWatches are answers to a watch, with what is told of them; the policy changes each ConfigMap.
func hostileWatches() map[string]struct{ stream, told string } {
	const no = "cannot watch configmaps in namespace default, trying again: "
	escape := `"\u001b[31m\u202e\r\n::error::x"`
	status := func(message string) string {
		return `{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "reason": "InternalError", "message": ` + message + `}}` + "\n"
	}
	return map[string]struct{ stream, told string }{
		"nothing":                   {"", no + "the server ends each watch at once"},
		"no JSON":                   {"<html>\n", no + "the answer is no event of a watch: invalid JSON"},
		"a type that is no text":    {`{"type": 1, "object": {}}` + "\n", no},
		"an unknown type":           {strings.ReplaceAll(watchedConfigMap("TYPE", `"x"`, "9", ""), `"TYPE"`, escape), no},
		"an error without a status": {`{"type": "ERROR"}` + "\n", no},
		"an error of escapes":       {status(escape), no},
		"an error of 5 MB":          {status(`"` + strings.Repeat(`\u001b]0;x\u0007`, 5<<20/16) + `"`), no},
		"a large event":             {watchedConfigMap("ADDED", `"x"`, "9", `, "data": {"k": "`+strings.Repeat("x", 17<<20)+`"}`), no},
		"no version":                {watchedConfigMap("ADDED", `"x"`, "", ""), no},
		"a bookmark of nothing":     {`{"type": "BOOKMARK", "object": {}}` + "\n", no},
		"many bookmarks":            {strings.Repeat(`{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}`+"\n", 100_000), ""},
		"the same event":            {strings.Repeat(watchedConfigMap("MODIFIED", `"x"`, "9", ""), 20_000), ""},
		"a deep object":             {watchedConfigMap("ADDED", `"x"`, "9", `, "data": `+strings.Repeat("[", 200_000)+strings.Repeat("]", 200_000)), ""},
		"a name of escapes":         {watchedConfigMap("ADDED", escape, "9", ""), ""},
		"a name of a path":          {watchedConfigMap("ADDED", `"../../../secrets/s"`, "9", ""), ""},
		"a name that is a list":     {watchedConfigMap("ADDED", `["x"]`, "9", ""), ""},
		"another kind":              {strings.ReplaceAll(watchedConfigMap("ADDED", `"x"`, "9", `, "data": {"password": "aHVudGVyMg=="}`), `"ConfigMap"`, `"Secret"`), ""},
		"null items":                {watchedConfigMap("ADDED", `"x"`, "9", `, "data": null, "metadata": null`), ""},
	}
}

// A watch that is answered with anything else ends in a message, or is taken for what it is; nothing of it acts on a terminal.
func TestHostileWatches(t *testing.T) {
	tier.NotShort(t)
	for name, c := range hostileWatches() {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			watches := 0
			s := &apiServer{hostile: func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == "/api/v1":
					_, _ = io.WriteString(w, strings.ReplaceAll(apiAnswers()["/api/v1"], `"list", "patch"`, `"list", "watch", "patch"`))
				case r.URL.Query().Get("watch") == "":
					return false
				case !strings.HasSuffix(r.URL.Path, "/configmaps"):
					<-ctx.Done()
				default:
					if watches++; watches > 3 {
						end()
						return true
					}
					_, _ = io.WriteString(w, c.stream)
				}
				return true
			}}
			s.Server = httptest.NewServer(s)
			defer s.Close()
			got := runUntil(ctx, t, s, "{token: hidden}", []string{"preview", "configmaps", "-p", "POLICY", "--watch"})
			text := got.out + got.errOut
			t.Logf("exit code %d\n%s", got.code, text)
			if !strings.Contains(got.errOut, c.told) {
				t.Errorf("%q is not told", c.told)
			}
			if len(text) > 20_000 {
				t.Errorf("%d bytes are shown", len(text))
			}
			if strings.ContainsAny(text, "\x1b\u202e\r\x07") || strings.Contains(text, "\n::error") || strings.Contains(text, "aHVudGVyMg") || strings.Contains(text, "panic") {
				t.Error("what the server sent is shown as it is")
			}
			if watches < 3 {
				t.Errorf("%d watches", watches)
			}
		})
	}
}

// However much a server says of what it refuses, a message has the beginning of it.
func TestLongMessagesOfAServer(t *testing.T) {
	tier.NotShort(t)
	long := `"` + strings.Repeat(`\u001b]0;x\u0007 `, 1<<20/16) + `"`
	for name, c := range hostileCommands() {
		s := &apiServer{}
		s.Server = httptest.NewServer(s)
		requests := runAgainst(t, s, "{token: hidden}", c.args).requests
		for i, request := range requests {
			if i%tier.Pick(4, 1) > 0 {
				continue
			}
			for _, media := range []string{"application/json", "text/plain"} {
				s.hostile = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method+" "+r.URL.Path != request {
						return false
					}
					w.Header().Set("Content-Type", media)
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": %s}`, long)
					return true
				}
				got := runAgainst(t, s, "{token: hidden}", c.args)
				if text := got.out + got.errOut; len(text) > 100_000 || strings.ContainsAny(text, "\x1b\x07") {
					t.Errorf("%s, %s of %s: %d bytes are shown: %.200q", name, media, request, len(text), got.errOut)
				}
			}
		}
		s.Close()
	}
}

// A server that goes away while a watch begins anew with changed policies: what had begun is not watched twice.
func TestWatchBeginsAgain(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	policy := write(t, t.TempDir(), "policy.yaml", labelPolicy)
	const configMaps, namespaces = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces"
	var mu sync.Mutex
	var failures int            // that are left
	var changed bool            // the policies have changed
	watches := map[string]int{} // that were opened
	opened := func(path string) {
		mu.Lock()
		defer mu.Unlock()
		watches[path]++
		switch {
		case changed && path == namespaces:
			time.AfterFunc(300*time.Millisecond, end)
		case !changed && len(watches) == 2:
			write(t, filepath.Dir(policy), "policy.yaml", strings.Replace(labelPolicy, `"e": "f"`, `"e": "g"`, 1))
		}
	}
	closed := func() {
		mu.Lock()
		defer mu.Unlock()
		if !changed {
			changed, failures = true, 5 // all attempts of one read
			clear(watches)
		}
	}
	fails := func() bool {
		mu.Lock()
		defer mu.Unlock()
		failures--
		return failures >= 0
	}
	s := &apiServer{hostile: func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		watched := r.URL.Query().Get("watch") != ""
		switch {
		case r.URL.Path == "/api/v1":
			_, _ = io.WriteString(w, strings.ReplaceAll(apiAnswers()["/api/v1"], `"list"`, `"list", "watch"`))
		case watched:
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			opened(r.URL.Path)
			<-r.Context().Done()
			closed()
		case r.URL.Path == namespaces && fails():
			w.WriteHeader(http.StatusInternalServerError)
		default:
			return false
		}
		return true
	}}
	s.Server = httptest.NewServer(s)
	defer s.Close()
	got := runUntil(ctx, t, s, "{token: hidden}", []string{"preview", "configmaps", "-p", policy, "--watch"})
	t.Logf("%s%s%v", got.out, got.errOut, watches)
	if !strings.Contains(got.errOut, "watch namespaces: ") || watches[configMaps] != 1 {
		t.Errorf("watches: %v", watches)
	}
}
