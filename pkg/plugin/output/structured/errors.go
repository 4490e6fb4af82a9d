package structured

import (
	"errors"
	"regexp"
	"strings"
)

// maxError bounds, in bytes, the error of a template or a query.
const maxError = 300

// quoting is an error in which a library repeats the value that it failed on, which may
// be the whole report.
type quoting struct {
	text    *regexp.Regexp
	instead string
}

// quotings are those of client-go's JSONPath, go-jmespath and text/template.
var quotings = []quoting{ //nolint:gochecknoglobals // an immutable table
	{regexp.MustCompile(`(?s)^.* is not array or slice and cannot be filtered$`), "what is filtered is no list"},
	{regexp.MustCompile(`(?s)^.* is not convertible to (\S+)$`), "a key is not convertible to $1"},
	{regexp.MustCompile(`(?s)^Invalid type for: .*, expected: \[\]jmespath\.jpType\{(.*)\}$`), "a function was given a value of another type than it takes, which is $1"},
	{regexp.MustCompile(`(?s)(if/with can't use|range can't iterate over) .*$`), "$1 a value of this type"},
	{regexp.MustCompile(`(?s)(can't use) .* (?:to )?(iterate over more than one variable)$`), "$1 this value to $2"},
	{regexp.MustCompile(`(?s)(non-comparable types?) .*$`), "$1"},
}

// brief returns an error without the value that it happened with. It is nil for nil.
func brief(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, q := range quotings {
		text = q.text.ReplaceAllString(text, q.instead)
	}
	if len(text) > maxError {
		// Where it happened stands at the beginning, and what it was at the end.
		text = strings.ToValidUTF8(text[:maxError/2], "") + " ... " + strings.ToValidUTF8(text[len(text)-maxError/2:], "")
	}
	return errors.New(text)
}
