package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// argument matches the words that kubectl passes on to the program (kubectl/pkg/cmd/diff): nothing that
// could be a path or hold a quote.
var argument = regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)

// ExternalVariable is the environment variable that names the program, as for kubectl diff.
const ExternalVariable = "KUBECTL_EXTERNAL_DIFF"

// External runs the program on two directories with the states of objects before and after. A nil External
// has nothing to end.
type External struct {
	ctx           context.Context // of the command
	name          string
	arguments     []string
	out, errOut   io.Writer
	before, after string // empty until there is an object to compare
}

// FindExternal parses the value of ExternalVariable as kubectl does: the program and its arguments, of which
// only plain words are kept. It fails if there is no such program.
func FindExternal(ctx context.Context, command string, out, errOut io.Writer) (*External, error) {
	words := strings.Split(command, " ")
	p := &External{ctx: ctx, name: words[0], out: out, errOut: errOut}
	if _, err := exec.LookPath(p.name); err != nil {
		return nil, fmt.Errorf("%s names a program that cannot be run: %w; fix it, or unset it", ExternalVariable, err)
	}
	for _, word := range words[1:] {
		if argument.MatchString(word) {
			p.arguments = append(p.arguments, word)
		}
	}
	return p, nil
}

// begin creates the directories, which only this user can read.
func (c *External) begin() (err error) {
	if c.before, err = os.MkdirTemp("", "LIVE-"); err == nil {
		c.after, err = os.MkdirTemp("", "MERGED-")
	}
	return err
}

// Add writes the two states of an object, empty for a missing one, to files of its name in both directories.
func (c *External) Add(name, before, after string) error {
	if c.after == "" {
		if err := c.begin(); err != nil {
			return fmt.Errorf("external diff: %w", err)
		}
	}
	file, err := c.reserve(fileName(name))
	if err != nil {
		return fmt.Errorf("external diff: %w", err)
	}
	for path, text := range map[string]string{
		filepath.Join(c.before, file): before,
		filepath.Join(c.after, file):  after,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("external diff: %w", err)
		}
	}
	return nil
}

// reserve returns an unused name of a file.
func (c *External) reserve(name string) (string, error) {
	for n := 1; ; n++ {
		unique := name
		if n > 1 {
			unique += "." + strconv.Itoa(n)
		}
		f, err := os.OpenFile(filepath.Join(c.before, unique), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return unique, f.Close()
		}
		if !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
}

// fileName replaces characters that not every file system takes: names come from clusters.
func fileName(name string) string {
	const longest = 200
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), longest)]
}

// Compare runs the program on the directories. As for kubectl diff, its exit code 1 means that it found
// differences.
func (c *External) Compare() error {
	if c.after == "" {
		return nil
	}
	// The user names the program, as for kubectl.
	cmd := exec.CommandContext(c.ctx, c.name, append([]string{c.before, c.after}, c.arguments...)...)
	cmd.Stdout, cmd.Stderr = c.out, c.errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: failed to run %q: %w", ExternalVariable, c.name, err)
	}
	return nil
}

// End removes the directories.
func (c *External) End() error {
	if c == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(c.before), os.RemoveAll(c.after))
}
