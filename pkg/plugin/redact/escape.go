package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Harmful reports whether a character could act on a terminal or disguise a line: control characters, line
// separators, direction marks, invisible characters (Default_Ignorable_Code_Point of Unicode) and
// noncharacters.
func Harmful(r rune) bool {
	switch {
	case r <= unicode.MaxASCII:
		return r < ' ' || r == 0x7f
	case r == utf8.RuneError:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point)
}

// maxMarks is the maximum number of combining marks in a row that are shown: more than any script puts on a
// letter, and too few to cover the lines above and below.
const maxMarks = 8

// EscapeLine returns a string as one line, with codes for line breaks, and for characters that could act on
// a terminal or a CI runner or mislead a reader.
func EscapeLine(s string) string { return disarm(Escape(s, "")) }

// EscapeLines is EscapeLine for a string whose line breaks and tabs stay.
func EscapeLines(s string) string { return disarm(Escape(s, "\n\t")) }

// workflowCommand matches the start of a command to the runner of GitHub Actions, which reads all that a
// step prints: after white space, on its own line (ActionCommand.TryParseV2 of actions/runner).
var workflowCommand = regexp.MustCompile(`(?m)^([\t\p{Zs}]*):(:[A-Za-z])`)

// bracketCommand matches the start of a command anywhere in a line: "##[" of GitHub Actions
// (ActionCommand.TryParse), "##vso[" of Azure Pipelines and "##teamcity[" of TeamCity.
var bracketCommand = regexp.MustCompile(`##([A-Za-z]*\[)`)

// disarm keeps a CI runner from executing a string as a command.
func disarm(s string) string {
	if strings.Contains(s, "::") {
		s = workflowCommand.ReplaceAllString(s, `${1}\x3a$2`)
	}
	if strings.Contains(s, "##") {
		s = bracketCommand.ReplaceAllString(s, `#\x23$1`)
	}
	return s
}

// Escape replaces by codes the characters that could act on a terminal or mislead a reader, and combining
// marks beyond maxMarks, except those in keep. It is for programs: unlike EscapeLine and EscapeLines it
// keeps commands to CI runners.
func Escape(s, keep string) string {
	if printable(s, keep) {
		return s
	}
	var b strings.Builder
	marks := 0
	for i, r := range s {
		if marks++; !unicode.In(r, unicode.Mn, unicode.Me) {
			marks = 0
		}
		switch {
		case !Harmful(r) && marks <= maxMarks || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == utf8.RuneError:
			_, size := utf8.DecodeRuneInString(s[i:])
			if size == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[i])
			} else {
				b.WriteRune(r)
			}
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// printable reports whether a string has only printable ASCII and characters to keep, as nearly all have.
func printable(s, keep string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && strings.IndexByte(keep, c) < 0 {
			return false
		}
	}
	return true
}

// EscapeJSON replaces the characters of a JSON document that a terminal may act on by equivalent JSON
// escapes. Outside of its strings JSON has only line breaks of them.
func EscapeJSON(text []byte) []byte {
	suspect := func(r rune) bool { return r >= 0x7f && Harmful(r) && r != utf8.RuneError }
	if bytes.IndexFunc(text, suspect) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !suspect(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// credentialName matches the names of URL parameters with credentials: token, private_token,
// X-Amz-Signature, sig.
var credentialName = regexp.MustCompile(`(?i)token|secret|passw|signature|credential|^sig$|api[-_]?key|access[-_]?key|^auth`)

// URL returns a URL as it may be shown: xxxxx stands for the user, who may be a token, the password, and the
// values of parameters named like credentials. Any other string is returned unchanged.
func URL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	parameters := strings.Split(u.RawQuery, "&")
	for i, p := range parameters {
		if name, value, _ := strings.Cut(p, "="); value != "" && credentialName.MatchString(name) {
			parameters[i] = name + "=xxxxx"
		}
	}
	u.RawQuery = strings.Join(parameters, "&")
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	return u.String()
}

// NewWriter returns a writer of messages for people, which escapes as EscapeLines does. A message, or a
// block of lines, has to be written with one call. Further lines of an error, warning, note or message of
// convert are indented, so that none reads as another message.
func NewWriter(out io.Writer) io.Writer { return writer{out} }

type writer struct{ out io.Writer }

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) {
	text := EscapeLines(string(p))
	if message.MatchString(text) {
		text = furtherLine.ReplaceAllString(text, "\n  $1")
	}
	if _, err := io.WriteString(w.out, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

var (
	message     = regexp.MustCompile(`^(error|warning|note|converted|not converted): `)
	furtherLine = regexp.MustCompile(`\n(\S)`)
)

// Limits of the message of an error.
const (
	maxCauses = 5
	maxText   = 300
)

// ServerError returns a message of an error that is safe to show. Servers quote what they reject: a strict
// 422 on a patch holds the whole object, a Secret's data in clear, and an immutable template comes as a Go
// struct. So rejected values are left out, and the rest is shortened. An error of no server is only
// shortened.
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
	if kind, rest, ok := strings.Cut(text, ": "); ok && slices.Contains(quoting, kind) {
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

// quoting lists the errors of apimachinery's field package that quote the rejected value.
var quoting = []string{"Invalid value", "Unsupported value", "Duplicate value", "Not found", "Too many", "Too few"} //nolint:gochecknoglobals // an immutable table

// afterValue skips a value, which is a Go string, JSON or a Go struct, and anything that may be part of it.
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

// afterLastValue returns what follows the last apparent end of a value; nothing if there is no end, or if
// the string was cut and may end in the value.
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

// withoutQuotedObject drops the object that a message without causes may quote.
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
