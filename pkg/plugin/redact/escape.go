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

// Harmful reports whether a character could act on a terminal, or make a line read as
// something that it is not: control characters and line separators, those that change the
// direction of writing, and all that readers cannot see (Default_Ignorable_Code_Point of
// Unicode) or that are not characters.
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

// maxMarks is how many combining marks in a row are shown as they are: more than any script
// puts on a letter, and too few to cover the lines above and below.
const maxMarks = 8

// EscapeLine returns a string as one line: what could act on a terminal or a CI runner, or
// mislead a reader, is shown by codes, and so are line breaks.
func EscapeLine(s string) string { return disarm(Escape(s, "")) }

// EscapeLines is EscapeLine for a string whose line breaks and tabs stay.
func EscapeLines(s string) string { return disarm(Escape(s, "\n\t")) }

// workflowCommand is how a command to the runner of GitHub Actions begins, which
// reads all that a step prints: after white space, on a line of its own
// (ActionCommand.TryParseV2 of actions/runner).
var workflowCommand = regexp.MustCompile(`(?m)^([\t\p{Zs}]*):(:[A-Za-z])`)

// bracketCommand begins one in the middle of a line as well: "##[" of GitHub Actions
// (ActionCommand.TryParse), "##vso[" of Azure Pipelines and "##teamcity[" of TeamCity.
var bracketCommand = regexp.MustCompile(`##([A-Za-z]*\[)`)

// disarm keeps a CI runner from taking a string for a command.
func disarm(s string) string {
	if strings.Contains(s, "::") {
		s = workflowCommand.ReplaceAllString(s, `${1}\x3a$2`)
	}
	if strings.Contains(s, "##") {
		s = bracketCommand.ReplaceAllString(s, `#\x23$1`)
	}
	return s
}

// Escape shows by codes what could act on a terminal or mislead a reader, and combining marks beyond a number
// in a row, but for the characters to keep. It is for what programs read: unlike EscapeLine and EscapeLines
// it leaves alone what a CI runner would take for a command.
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

// printable reports whether a string is nothing but printable ASCII and what is kept,
// as nearly all are.
func printable(s, keep string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && strings.IndexByte(keep, c) < 0 {
			return false
		}
	}
	return true
}

// EscapeJSON replaces, in a JSON document, the characters that JSON allows and a terminal
// may act on by the escapes that mean the same. Outside of its strings JSON has none of
// them but line breaks.
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

// credentialName is like the names of the parameters in which URLs have credentials: token, private_token,
// X-Amz-Signature, sig.
var credentialName = regexp.MustCompile(`(?i)token|secret|passw|signature|credential|^sig$|api[-_]?key|access[-_]?key|^auth`)

// URL returns a URL as it may be shown: without a user, who may be a token, and a password, and without the
// values of parameters that have the names of credentials; xxxxx stands for them. Any other text is returned
// as it is.
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

// NewWriter returns a writer of text for people, which escapes as EscapeLines does. A message, or a block of
// lines, has to be written with one call. The further lines of an error, a warning, a note or what convert
// says of a policy are indented, so that none of them reads as a message of its own.
func NewWriter(out io.Writer) io.Writer { return writer{out} }

type writer struct{ out io.Writer }

// Write writes the text as it may be shown.
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

// quoting are the errors of apimachinery's field package that hold the rejected value in their text.
var quoting = []string{"Invalid value", "Unsupported value", "Duplicate value", "Not found", "Too many", "Too few"} //nolint:gochecknoglobals // an immutable table

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

// withoutQuotedObject drops the object that a string without causes may quote.
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
