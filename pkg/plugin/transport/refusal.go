package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

const (
	// maxRefusal is the bytes of the body of an answer that refuses a request; it may quote the object several times.
	maxRefusal = 16 << 20
	// maxMessage is the bytes of a message in it, and maxStatusCauses how many causes it has.
	maxMessage      = 4 << 10
	maxStatusCauses = 100
)

// refusal is the body of an answer that refuses a request, with messages that can be shown and kept.
type refusal struct {
	io.ReadCloser
	json bool
	text *bytes.Reader // nil until it is read
}

// refused gives an answer that refuses its request a body with short messages.
func refused(r *http.Response, b *body) {
	if r.StatusCode < http.StatusBadRequest {
		return
	}
	b.limits.Bytes = min(b.limits.Bytes, maxRefusal)
	r.Body, r.ContentLength = &refusal{ReadCloser: b, json: isJSON(r.Header.Get("Content-Type"))}, -1
	r.Header.Del("Content-Length")
}

// Read reads all of the body first.
func (r *refusal) Read(p []byte) (int, error) {
	if r.text == nil {
		text, err := io.ReadAll(r.ReadCloser)
		if err != nil {
			return 0, err
		}
		if len(text) > maxMessage {
			text = r.short(text)
		}
		r.text = bytes.NewReader(text)
	}
	return r.text.Read(p)
}

// short returns a Status, or a text, with short messages; any other JSON as it is.
func (r *refusal) short(text []byte) []byte {
	if !r.json {
		return []byte(firstWords(string(text)))
	}
	var s metav1.Status
	if json.Unmarshal(text, &s) != nil || s.Kind != "Status" {
		return text
	}
	ShortenStatus(&s)
	if short, err := json.Marshal(s); err == nil {
		return short
	}
	return text
}

// ShortenStatus leaves of what a server says of an error so much that a run can keep and show it for many objects.
func ShortenStatus(s *metav1.Status) {
	s.Message, s.Reason = firstWords(s.Message), metav1.StatusReason(firstWords(string(s.Reason)))
	if s.Details == nil {
		return
	}
	d := s.Details
	d.Name, d.Group, d.Kind = firstWords(d.Name), firstWords(d.Group), firstWords(d.Kind)
	d.Causes = slices.Clone(d.Causes[:min(len(d.Causes), maxStatusCauses)])
	for i := range d.Causes {
		c := &d.Causes[i]
		c.Type, c.Message, c.Field = metav1.CauseType(firstWords(string(c.Type))), firstWords(c.Message), firstWords(c.Field)
	}
}

// firstWords leaves the beginning of a text, but not its end: it would be taken for what follows a value that is left out.
func firstWords(text string) string { return engine.FirstWords(text, maxMessage) }
