package cluster

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// The levels of -v that show requests, as in kubectl.
const (
	LogRequestLevel = 6 // method, URL, status and time of each request
	logHeaders      = 7
	logBodies       = 8 // the first 1 KiB of them; 10 KiB at level 9, all at level 10
)

// MaxKlogLevel is the highest verbosity that klog may be given: from LogRequestLevel on, client-go
// logs requests itself, with the values of Secrets in their bodies.
const MaxKlogLevel = LogRequestLevel - 1

// LogRequests returns a transport wrapper that logs requests and responses through klog, in
// client-go's words, at a level from LogRequestLevel on. It never logs a credential or a value of
// a Secret: neither those in the bodies that it sees, nor those that known has learned.
func LogRequests(level int, known *redact.Masker) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &requestLog{next: next, level: level, known: known, seen: &redact.Masker{}}
	}
}

type requestLog struct {
	next  http.RoundTripper
	level int
	known *redact.Masker
	// seen has learned the Secrets of the bodies. It is not known, so that what a run masks does
	// not depend on -v.
	seen *redact.Masker
}

// RoundTrip sends the request and logs it.
func (t *requestLog) RoundTrip(r *http.Request) (*http.Response, error) {
	request := []any{"verb", r.Method, "url", t.url(r)}
	if t.level >= logHeaders {
		klog.InfoS("Request", append(slices.Clone(request), "headers", t.mask(headerLines(r.Header)))...)
	}
	if t.level >= logBodies {
		t.logRequestBody(r)
	}
	start := time.Now()
	response, err := t.next.RoundTrip(r)
	took := time.Since(start).Milliseconds()
	if err != nil {
		klog.InfoS("Response", append(request, "status", "", "milliseconds", took, "err", t.err(r, err))...)
		return response, err
	}
	line := append(request, "status", response.Status, "milliseconds", took)
	if t.level >= logBodies {
		line = append(line, "headers", t.headers(r, response.Header))
	}
	klog.InfoS("Response", line...)
	if t.level >= logBodies && !transport.IsWatch(r) { // which has no end
		t.logResponseBody(r, response)
	}
	return response, nil
}

// url is what the log shows of a URL: unescaped where it holds a value that is masked. What a policy asks for after it has
// read a Secret may be made of that.
func (t *requestLog) url(r *http.Request) string {
	if engine.UsesSecret(r.Context()) && r.Method != http.MethodPatch {
		return engine.ErrHidden.Error()
	}
	text := redact.URL(r.URL.String())
	for _, unescape := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		plain, err := unescape(text)
		if masked := t.mask(plain); err == nil && masked != plain {
			return masked
		}
	}
	return t.mask(text)
}

// headers are what the log shows of those of a response. A warning may quote a request that depends on a Secret, a
// location its URL, and a length gives away how long a value is.
func (t *requestLog) headers(r *http.Request, header http.Header) string {
	if engine.UsesSecret(r.Context()) || hasSegment(r, "secrets") {
		header = header.Clone()
		for name, values := range header {
			if !slices.Contains(plainHeaders, name) {
				for i := range values {
					values[i] = redact.Mask
				}
			}
		}
	}
	return t.mask(headerLines(header))
}

// plainHeaders say nothing about the request or its answer.
var plainHeaders = []string{"Audit-Id", "Cache-Control", "Content-Type", "Date", "Retry-After", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"} //nolint:gochecknoglobals // an immutable table

// hasSegment reports whether the path of a request has a segment.
func hasSegment(r *http.Request, segment string) bool {
	return slices.Contains(strings.Split(r.URL.Path, "/"), segment)
}

// err is what the log shows of an error, which may name the URL.
func (t *requestLog) err(r *http.Request, err error) error {
	if engine.UsesSecret(r.Context()) {
		return engine.ErrHidden
	}
	return err
}

func (t *requestLog) mask(text string) string { return t.known.Text(t.seen.Text(text)) }

// WrappedRoundTripper lets client-go find the transport below.
func (t *requestLog) WrappedRoundTripper() http.RoundTripper { return t.next }

// logRequestBody logs a copy of the body; the body itself stays unread.
func (t *requestLog) logRequestBody(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody || r.GetBody == nil {
		return
	}
	body, err := r.GetBody()
	if err != nil {
		return
	}
	text, err := io.ReadAll(body)
	if err == nil {
		klog.Infof("Request Body: %s", t.text(r, text))
	}
}

// logResponseBody logs the body and puts it back. A read error is the reader's of the body.
func (t *requestLog) logResponseBody(r *http.Request, response *http.Response) {
	text, err := io.ReadAll(response.Body)
	var rest io.Reader = bytes.NewReader(text)
	if err != nil {
		rest = io.MultiReader(rest, failing{err})
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{rest, response.Body}
	klog.Infof("Response Body: %s", t.text(r, text))
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// text is what the log shows of a body.
func (t *requestLog) text(r *http.Request, body []byte) string {
	if engine.UsesSecret(r.Context()) {
		return redact.Mask
	}
	if hasSegment(r, "authentication.k8s.io") || hasSegment(r, "token") {
		return redact.Mask // a TokenReview or a TokenRequest
	}
	var decoded any
	if err := json.Unmarshal(body, &decoded); err != nil {
		return fmt.Sprintf("[%d bytes that are not JSON]", len(body))
	}
	b := bodyMasker{seen: t.seen}
	decoded = b.secrets(decoded, hasSegment(r, "secrets"))
	// One object around it: a JSON patch is a list.
	whole := &unstructured.Unstructured{Object: map[string]any{"body": decoded}}
	shown, err := json.Marshal(t.known.Object(t.seen.Object(whole)).Object["body"])
	if err != nil {
		return fmt.Sprintf("[%d bytes]", len(body))
	}
	return truncate(string(shown), t.level)
}

// truncate cuts a body as client-go does.
func truncate(text string, level int) string {
	limit := len(text)
	switch level {
	case logBodies:
		limit = 1 << 10
	case logBodies + 1:
		limit = 10 << 10
	}
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s [truncated %d chars]", text[:limit], len(text)-limit)
}

// bodyMasker masks Secrets in a decoded body, and learns their values.
type bodyMasker struct{ seen *redact.Masker }

// secrets returns v with each Secret in it masked, at whatever depth. What has no kind is taken
// for a part of a Secret if secret is set, because the request is for Secrets.
func (b bodyMasker) secrets(v any, secret bool) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = b.secrets(v[i], secret)
		}
		return out
	case map[string]any:
		return b.object(v, secret)
	}
	return v
}

func (b bodyMasker) object(object map[string]any, secret bool) map[string]any {
	kind, _ := object["kind"].(string)
	_, isOperation := object["op"]
	out := make(map[string]any, len(object))
	for name, value := range object {
		out[name] = value
	}
	switch {
	case kind == "Secret", kind == "" && secret && !isOperation:
		whole := &unstructured.Unstructured{Object: out}
		whole.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		b.seen.Learn(whole)
		out = b.seen.Object(whole).Object
		if kind == "" {
			delete(out, "kind")
			delete(out, "apiVersion")
		}
		return out
	case secret && isOperation: // of a JSON patch
		if _, is := out["value"]; is {
			out["value"] = redact.Mask
		}
		return out
	case secret && kind == "Status": // whose message may quote what it refuses
		delete(out, "message")
		delete(out, "details")
		return out
	}
	for name, value := range out {
		out[name] = b.secrets(value, kind == "SecretList" && name == "items")
	}
	return out
}

// headerLines are headers, one to a line and in order, without credentials.
func headerLines(header http.Header) string {
	var lines []string
	for name, values := range header {
		for _, value := range values {
			if isCredential(name) {
				value = "<masked>"
			}
			lines = append(lines, name+": "+value+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// isCredential reports whether a header may hold a credential.
func isCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "token", "cookie", "secret", "key"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}
