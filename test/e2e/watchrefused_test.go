package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Somebody edits an object between the evaluation of everything and the write: the others are written, and the change of this one is made of what
// it is then. That is so at first and after a change of the policies, for the object's own rules and for those that others trigger; and nothing is
// made twice.
func TestWatchGoesOnAfterADrift(t *testing.T) {
	t.Parallel()
	for name, triggered := range map[string]bool{"of an own rule": false, "of a trigger": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAppendingWatch(t)
			a.meddle = func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				a.edit("app-1", `{"data":{"log":"+"}}`)
				pass.ServeHTTP(w, r)
			}
			a.trigger("one")
			policy := func(text string) {
				if !triggered {
					a.appends(text)
					return
				}
				a.appendsToTargets(text)
			}
			policy("x")
			a.start("--concurrency=1")
			a.await("Watching ")
			a.becomes("=x +x =x")
			a.begun.Store(false)
			policy("y")
			a.becomes("=xy +y =xy")
			a.trigger("two") // is evaluated when all else is over
			a.becomes(map[bool]string{true: "=xyy +yy =xyy", false: "=xy +y =xy"}[triggered])
			if a.end(); a.cmd.ProcessState.ExitCode() != 3 { // it has told a drift
				t.Errorf("%v\n%s", a.cmd.ProcessState, a.said())
			}
		})
	}
}

// The same for an event: what it changes and somebody else edits meanwhile is made of what that is then, and of nothing else again.
func TestWatchTriesTheTargetOfAnEventAgain(t *testing.T) {
	t.Parallel()
	a := startAppendingWatch(t)
	a.meddle = func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		a.edit("app-1", `{"data":{"log":"+"}}`)
		pass.ServeHTTP(w, r)
	}
	a.start("--concurrency=1")
	a.await("Watching ")
	a.trigger("first")
	a.becomes("=x +x =x")
	a.trigger("second")
	a.becomes("=xx +xx =xx")
	a.end()
}

// appendsToTargets makes the policy one that appends a character to each object whenever a trigger is evaluated.
func (a *appendingWatch) appendsToTargets(text string) {
	a.t.Helper()
	all := strings.NewReplacer("mutateExistingOnPolicyUpdate: false", "mutateExistingOnPolicyUpdate: true", ", operations: [CREATE]", "", "}}x", "}}"+text).Replace(appendingPolicy)
	check(a.t, os.WriteFile(filepath.Join(a.dir, "append.yaml"), []byte(all), 0o600))
}

// The server goes away when a part of everything is written: the rest is made when it is back, and nothing twice.
func TestWatchMakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	a := startAppendingWatch(t)
	a.meddle = func(http.ResponseWriter, *http.Request, http.Handler) {
		a.away.Store(true)
		abort()
	}
	a.trigger("one")
	a.appendsToTargets("x")
	a.start("--concurrency=1")
	a.await("it is open whether changes were made, trying again")
	if got := a.logs(); got != "=x = =" {
		t.Errorf("got %s", got)
	}
	a.away.Store(false)
	a.await("Watching ")
	a.becomes("=x =x =x")
	a.end()
}

// An object that the server refuses to change does not keep the others from being written, at first, after a change of the policies, and in an event.
func TestWatchGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	a := startAppendingWatch(t)
	a.meddle = func(w http.ResponseWriter, r *http.Request, pass http.Handler) { pass.ServeHTTP(w, r) }
	a.edit("app-0", `{"immutable":true}`)
	a.appends("x")
	a.start("--concurrency=1")
	a.becomes("= =x =x")
	a.await("Watching ")
	a.appends("y")
	a.becomes("= =xy =xy")
	a.edit("app-0", `{"metadata":{"labels":{"edited":"yes"}}}`)
	a.edit("app-2", `{"data":{"log":"+"}}`)
	a.becomes("= =xy +y")
	if a.end(); a.cmd.ProcessState.ExitCode() != 3 || strings.Contains(a.said(), "nothing was written") {
		t.Errorf("%v\n%s", a.cmd.ProcessState, a.said())
	}
}
