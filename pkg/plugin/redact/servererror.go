package redact

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Bounds of the text of an error.
const (
	maxCauses = 5
	maxText   = 300
)

// ServerError returns the text of an error that is safe to show. Servers quote what they reject:
// a strict 422 on a patch holds the whole object, a Secret's data in clear, and an
// immutable template comes as a Go struct. So rejected values are left out, and
// what remains is cut. An error that does not come from a server is only cut.
func ServerError(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return shorten(err.Error())
	}
	s := status.Status()
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return shorten(withoutQuotedObject(s.Message))
	}
	var texts []string
	for i, cause := range s.Details.Causes {
		if i == maxCauses {
			texts = append(texts, "and "+strconv.Itoa(len(s.Details.Causes)-i)+" more")
			break
		}
		texts = append(texts, cleanCause(cause))
	}
	return shorten(strings.Join(texts, "; "))
}

// cleanCause is "spec.replicas: Invalid value: must be greater than 0".
func cleanCause(c metav1.StatusCause) string {
	text := c.Message
	if kind, rest, ok := strings.Cut(text, ": "); ok && quotesValue(kind) {
		text = kind
		if detail := afterValue(rest); detail != "" {
			text += ": " + detail
		}
	}
	if c.Field == "" {
		return firstLine(text)
	}
	return c.Field + ": " + firstLine(text)
}

// quotesValue reports whether an error of apimachinery's field package holds the rejected
// value in its text.
func quotesValue(kind string) bool {
	return slices.Contains([]string{"Invalid value", "Unsupported value", "Duplicate value", "Not found", "Too many", "Too few"}, kind)
}

// afterValue skips a value: a Go string, JSON, or a Go struct. What could be a part of
// the value is left out with it.
func afterValue(text string) string {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		return strings.TrimPrefix(text[len(quoted):], ": ")
	}
	var value json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(text))
	if decoder.Decode(&value) == nil {
		return strings.TrimPrefix(text[decoder.InputOffset():], ": ")
	}
	return afterLastValue(text)
}

// afterLastValue keeps what follows the last thing that looks like the end of a
// value; nothing, if nothing does, or if the text was cut: it may end in the value.
func afterLastValue(text string) string {
	end := len(text)
	if strings.HasSuffix(text, engine.Cut) {
		return ""
	}
	for _, mark := range []string{`": `, `}: `, `]: `, `): `} {
		if i := strings.LastIndex(text, mark); i >= 0 && (end == len(text) || i+len(mark) > end) {
			end = i + len(mark)
		}
	}
	return text[end:]
}

// withoutQuotedObject drops the object that a text without causes may quote.
func withoutQuotedObject(text string) string {
	head, quoted, ok := strings.Cut(text, "{")
	if !ok {
		return text
	}
	if tail := afterLastValue(quoted); tail != "" && !strings.Contains(tail, "{") {
		return tail
	}
	return strings.TrimRight(head, ` "`) + " " + engine.Cut
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func shorten(text string) string {
	return engine.FirstWords(strings.Join(strings.Fields(text), " "), maxText)
}
