package metrics

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fileMode lets the agent that collects the metrics, and runs as somebody else,
// read them.
const fileMode = 0o644

// WriteTo writes all metrics. Equal runs are written as equal bytes.
func (r *Run) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	b.WriteString("# TYPE kubectl_mutate_run info\n# HELP kubectl_mutate_run The run that these metrics are of.\n")
	b.WriteString("kubectl_mutate_run_info" + labelsText([]string{"verb", "version"}, []string{r.verb, r.version}) + " 1\n")
	for _, f := range r.families {
		f.writeTo(&b)
	}
	b.WriteString("# EOF\n")
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// WriteFile writes all metrics to a file, which takes the place of one that is
// there in one step: nobody reads half of it.
func (r *Run) WriteFile(path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing metrics to %s: %w", path, err)
		}
	}()
	// In the same directory, since renaming does not cross file systems.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = r.WriteTo(file)
	if err == nil {
		err = file.Chmod(fileMode)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// CheckFile tells, before a run, whether WriteFile can be expected to work. Only
// an ordinary file is replaced, no device and no directory.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no ordinary file", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if !dir.IsDir() {
		return fmt.Errorf("%s is no directory", filepath.Dir(path))
	}
	return nil
}
