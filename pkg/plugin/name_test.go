package plugin

import "testing"

func TestDisplayName(t *testing.T) {
	for _, c := range []struct{ why, argv0, typed, want string }{
		{"kubectl runs a plugin by its path", "/usr/local/bin/kubectl-mutate", "/usr/bin/kubectl", "kubectl mutate"},
		{"a path typed by hand", "/usr/local/bin/kubectl-mutate", "/usr/local/bin/kubectl-mutate", "kubectl-mutate"},
		{"found on PATH by the shell", "kubectl-mutate", "/usr/local/bin/kubectl-mutate", "kubectl-mutate"},
		{"a relative path", "./bin/kubectl-mutate", "", "kubectl-mutate"},
		{"an underscore stands for a dash", "/krew/bin/kubectl-mutate_existing", "/usr/bin/kubectl", "kubectl mutate-existing"},
		{"renamed by its user", "/opt/mut", "/usr/bin/kubectl", "mut"},
		{"Windows", "/bin/kubectl-mutate.exe", "kubectl.exe", "kubectl mutate"},
	} {
		if got := displayName(c.argv0, c.typed); got != c.want {
			t.Errorf("%s: displayName(%q, %q) = %q, want %q", c.why, c.argv0, c.typed, got, c.want)
		}
	}
}
