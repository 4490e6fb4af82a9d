package file_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

func TestScratch(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := file.Scratch{InMemory: 1000}
	texts := map[file.Place]string{}
	for i := range 100 {
		text := strings.Repeat(fmt.Sprint("hunter", i), i+1)
		p, err := s.Append([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		texts[p] = text
		if open := descriptor(dir) != ""; runtime.GOOS == "linux" && open != (held(texts) > 1000) {
			t.Errorf("%d bytes; there is a file: %t", held(texts), open)
		}
	}
	if left := names(t, dir); len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("a process that is killed now leaves %v behind", left)
	}
	for p, want := range texts {
		if got, err := s.Read(p); err != nil || string(got) != want {
			t.Errorf("%v: got %q, %v, want %q", p, got, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for p := range texts {
		if got, err := s.Read(p); err == nil {
			t.Fatalf("read %q after Close", got)
		}
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What others may find on the disk tells them nothing, and what they write there is not read.
func TestScratchIsEncrypted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finds the file by its descriptor")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var s file.Scratch
	p, err := s.Append([]byte("hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // what it holds is needed no more
	path := descriptor(dir)
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 || bytes.Contains(text, []byte("hunter2")) {
		t.Errorf("on disk: %q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != file.Private {
		t.Errorf("mode %v, %v", info, err)
	}
	text[0] ^= 1
	if err := os.WriteFile(path, text, file.Private); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(p); err == nil {
		t.Errorf("read %q, which somebody else has written", got)
	}
}

func held(texts map[file.Place]string) (n int) {
	for _, text := range texts {
		n += len(text)
	}
	return n
}

// descriptor returns the path of the open file that had its name in a directory; empty if there is none.
func descriptor(dir string) string {
	open, _ := filepath.Glob("/proc/self/fd/*") // the pattern is right
	for _, path := range open {
		if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, dir+"/") {
			return path
		}
	}
	return ""
}

// Where the disk takes nothing, texts stay in memory until they are freed.
func TestScratchWithoutADirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	s := file.Scratch{InMemory: 10}
	texts := []string{"small", "large as it is", "tiny", "large as the other", "after them"}
	var places []file.Place
	for i, text := range texts {
		buffer := []byte(text)
		p, err := s.Append(buffer)
		if small := i == 0 || i == 2; small != (err == nil) {
			t.Errorf("%q: %v", text, err)
		}
		clear(buffer)
		places = append(places, p)
	}
	for i, p := range places {
		if got, err := s.Read(p); err != nil || string(got) != texts[i] {
			t.Errorf("got %q, %v; want %q", got, err, texts[i])
		}
	}
	s.Free(places[1])
	s.Free(places[2]) // which is with others
	for i, p := range places {
		if got, err := s.Read(p); (err == nil) != (i != 1) || err == nil && string(got) != texts[i] {
			t.Errorf("after Free: got %q, %v; want %q", got, err, texts[i])
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range places {
		if got, err := s.Read(p); err == nil {
			t.Errorf("read %q after Close", got)
		}
	}
}
