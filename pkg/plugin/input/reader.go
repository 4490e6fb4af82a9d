package input

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// defaultMaxDocument is the maximum size of a document in bytes: room for a `List` of some twenty thousand
// objects.
const defaultMaxDocument = 64 << 20

// Reader reads manifests. It remembers that standard input was read, so that one Reader serves a whole
// command; it must not be used concurrently, nor while it streams.
type Reader struct {
	Stdin       io.Reader // for "-"; may be nil
	MaxDocument int       // bytes of one document; 0 is 64 MiB
	// Instead has content, by path, that is read instead of files.
	Instead map[string][]byte

	stdinRead bool
	buffer    *bufio.Reader
}

// Files names what to read.
type Files struct {
	// Paths are files of any name, directories, "-" for standard input, and URLs.
	Paths []string
	// Kustomize is the directory of a kustomization, built as "kubectl kustomize" does; may be empty. Its
	// objects come before those of Paths.
	Kustomize string
	// Recursive descends into the directories below a directory.
	Recursive bool
	// URLs allows http and https paths. A redirect to another host is refused.
	URLs bool
	// LeftOut is called for each file of a directory that is not read because of its extension; may be nil.
	LeftOut func(directory, name string)
	// Lines makes documents know the lines of their fields, for which their content is kept.
	Lines bool
	// APIVersion and Kind are the defaults of documents without either; empty if such a document is an error.
	APIVersion, Kind string
}

// Read streams the objects of all paths, in the order of the paths, and in a directory in the order of the
// names. From a directory it takes the files that end in .yaml, .yml or .json; names that start with a dot
// are left out, links to files are followed and links to directories are not. The elements of a `List` come
// one by one; documents with only comments are skipped.
//
// An error concerns one document or one path and is an *Error; reading continues after it. Only a cancelled
// context ends it, with the context's error as the last one.
func (r *Reader) Read(ctx context.Context, input Files) iter.Seq2[engine.Document, error] {
	return func(yield func(engine.Document, error) bool) {
		goOn := func(err error) bool {
			switch {
			case errors.Is(err, errStopped):
				return false
			case ctx.Err() != nil:
				yield(engine.Document{}, context.Cause(ctx))
				return false
			}
			return err == nil || yield(engine.Document{}, err)
		}
		if input.Kustomize != "" && !goOn(r.readKustomization(ctx, input, yield)) {
			return
		}
		for _, path := range input.Paths {
			for file, err := range files(path, input) {
				if err == nil {
					err = r.readFile(ctx, file, input, yield)
				}
				if !goOn(err) {
					return
				}
			}
		}
	}
}

// ReadAll returns what Read streams: the readable documents, and the joined errors of the others.
func (r *Reader) ReadAll(ctx context.Context, input Files) ([]engine.Document, error) {
	var documents []engine.Document
	var errs []error
	for d, err := range r.Read(ctx, input) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		documents = append(documents, d)
	}
	return documents, errors.Join(errs...)
}

// ReadText returns the documents of a file with this content. Those of a kustomization.yaml need no kind. It
// joins the errors of unreadable documents.
func ReadText(ctx context.Context, path string, text []byte) ([]engine.Document, error) {
	r := Reader{Instead: map[string][]byte{path: text}}
	var documents []engine.Document
	var errs []error
	files := Files{}
	if isKustomization(path) {
		files.APIVersion, files.Kind = KustomizeGroup+"/v1beta1", "Kustomization"
	}
	err := r.readFile(ctx, path, files, func(d engine.Document, err error) bool {
		if err != nil {
			errs = append(errs, err)
		} else {
			documents = append(documents, d)
		}
		return true
	})
	return documents, errors.Join(append(errs, err)...)
}

// errStopped reports that the caller stops reading; it never leaves the package.
var errStopped = errors.New("stopped by the caller")

// readFile yields the documents of one file, URL or stream.
func (r *Reader) readFile(ctx context.Context, path string, input Files,
	yield func(engine.Document, error) bool,
) error {
	content, name, err := r.open(ctx, path)
	if err != nil {
		return errorAt(name, err)
	}
	ctx, done := limit.Object(ctx, stream{name: name})
	defer done()
	defer content.Close() //nolint:errcheck // nothing was written
	empty := true
	err = r.readStream(ctx, stream{content, name}, input, func(d engine.Document, err error) bool {
		empty = false
		return yield(d, err)
	})
	if err == nil && empty && path == "-" {
		return errorAt(name, ErrEmptyStream)
	}
	return err
}

// ErrEmptyStream reports standard input without an object, which is a mistake even if other files have some.
var ErrEmptyStream = errors.New("there is no object in standard input; has the command before the pipe failed?")

// stream is the content of a file with its name in messages.
type stream struct {
	io.Reader
	name string
}

// String returns the name.
func (s stream) String() string { return s.name }

func (r *Reader) readStream(ctx context.Context, content stream, input Files,
	yield func(engine.Document, error) bool,
) error {
	if r.buffer == nil {
		r.buffer = bufio.NewReaderSize(nil, 64<<10)
	}
	r.buffer.Reset(content)
	documents := splitter{from: r.buffer, limit: cmp.Or(r.MaxDocument, defaultMaxDocument)}
	aliases := aliasBudget
	next := documents.ahead()
	defer func() { _, _ = next() }() // the buffer is used again
	for {
		parts, end := next()
		if end == nil {
			next = documents.ahead()
		}
		for _, part := range parts {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for d, err := range part.objects(content.name, input, &aliases) {
				if !yield(d, err) {
					return errStopped
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(end, io.EOF):
			return nil
		case end != nil:
			return errorAt(content.name, end)
		}
	}
}

// open returns the content of a path and its name in messages.
func (r *Reader) open(ctx context.Context, path string) (io.ReadCloser, string, error) {
	switch {
	case path == "-":
		const name = "stdin"
		if r.Stdin == nil {
			return nil, name, errors.New("there is no standard input to read from")
		}
		if r.stdinRead {
			return nil, name, errors.New(`standard input can be read only once: "-" was given twice`)
		}
		r.stdinRead = true
		return io.NopCloser(r.Stdin), name, nil
	case isURL(path):
		content, err := fetch(ctx, path)
		return content, redacted(path), err
	}
	if text, is := r.Instead[path]; is {
		return io.NopCloser(bytes.NewReader(text)), path, nil
	}
	file, err := os.Open(path)
	return file, path, err
}

func isURL(path string) bool {
	return strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://")
}

const fetchTimeout = 30 * time.Second

// fetch reads a URL with a client without credentials and cookies, which does not leave the host that was
// typed.
func fetch(ctx context.Context, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("invalid URL")
	}
	response, err := transport.NewClient(nil, fetchTimeout).Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL, which may have a password
		}
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close() //nolint:errcheck // nothing of it was read
		return nil, fmt.Errorf("the server answered %s", response.Status)
	}
	return response.Body, nil
}

// redacted returns a URL without credentials.
func redacted(address string) string {
	if _, err := url.Parse(address); err != nil {
		return "the URL"
	}
	return redact.URL(address)
}
