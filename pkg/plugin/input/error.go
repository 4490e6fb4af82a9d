package input

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// ErrNotObject is wrapped by the Error of a document that is well-formed but no
// Kubernetes object: it is no mapping, or it names no apiVersion or no kind.
var ErrNotObject = errors.New("not a Kubernetes object")

// Error says what is wrong with a manifest, and where.
type Error struct {
	Path string // the file, the URL without its password, or "stdin"
	Line int    // counted from 1 in the file; 0 where the file as a whole is meant
	Err  error
}

// Error is "path:line: reason".
func (e *Error) Error() string { return e.Origin() + ": " + e.Err.Error() }

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Err }

// Origin is the place, in the words of engine.Document.
func (e *Error) Origin() string { return origin(e.Path, e.Line) }

func origin(path string, line int) string {
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(line)
}

// at completes an error with the path of the manifest that it happened in.
func at(path string, err error) *Error {
	var placed *Error
	if errors.As(err, &placed) {
		return &Error{Path: path, Line: placed.Line, Err: placed.Err}
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		err = file.Err // which has no second path
	}
	return &Error{Path: path, Err: err}
}

// mayBeSecret reports whether a text may be that of a Secret, or of what makes one. It is asked where the text cannot be
// decoded, so that nobody knows what it is.
func mayBeSecret(text []byte) bool {
	text = bytes.ToLower(text)
	return bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("stringdata"))
}

// quoted is what an error quotes of a document.
func quoted(text string, secret bool) string {
	if secret {
		return engine.HiddenValue
	}
	return text
}
