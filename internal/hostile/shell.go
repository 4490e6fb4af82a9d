package hostile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// show is a function of a shell that prints its arguments, each ended by a line break, and
// the number of them.
const show = "show() { for word; do printf '%s\\n' \"$word\"; done; echo \"$# words\"; }\n"

// Paste gives shells lines as somebody pastes them, with the history of commands where a shell
// has one, and returns what each prints by the name of the shell. The lines may call show, which
// prints its arguments, and a line with their number. It is an error if the lines leave a file behind.
func Paste(t testing.TB, lines string) map[string]string {
	t.Helper()
	out := map[string]string{}
	script := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(script, []byte(show+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, shell := range [][]string{{"sh"}, {"bash", "--norc", "-o", "history", "-o", "histexpand"}, {"zsh", "-f"}, {"busybox", "sh"}} {
		program, err := exec.LookPath(shell[0])
		if err != nil {
			continue
		}
		typed, err := os.Open(script) // not a pipe, of which shells read one byte at a time
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, shell[1:]...)
		cmd.Dir, cmd.Stdin = t.TempDir(), typed
		cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "HISTFILE=", "LC_ALL=C.UTF-8")
		shown, err := cmd.Output()
		if err := errors.Join(err, typed.Close()); err != nil {
			t.Errorf("%s: %v", shell[0], err)
		}
		left, err := os.ReadDir(cmd.Dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%s left behind: %v %v", shell[0], left, err)
		}
		out[shell[0]] = string(shown)
	}
	if len(out) == 0 {
		t.Skip("no shell")
	}
	return out
}

// Shown is what the function show prints of words.
func Shown(words ...string) string {
	out := ""
	for _, word := range words {
		out += word + "\n"
	}
	return out + fmt.Sprintf("%d words\n", len(words))
}
