package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

var jsonStart = regexp.MustCompile(`^\s*\{\s*["}]`)

func looksLikeJSON(text []byte) bool { return jsonStart.Match(text) }

// decodeJSON decodes JSON values that stand one after the other.
func decodeJSON(p part) (values []value, err error) {
	for {
		if p = p.from(len(p.text) - len(bytes.TrimLeft(p.text, " \t\r\n"))); len(p.text) == 0 {
			return values, nil
		}
		decoder := json.NewDecoder(bytes.NewReader(p.text))
		if err := decoder.Decode(new(json.RawMessage)); err != nil {
			return nil, jsonError(p, err)
		}
		end := int(decoder.InputOffset())
		v, err := decodeJSONValue(part{text: p.text[:end], line: p.line})
		if err != nil {
			return nil, err
		}
		values, p = append(values, v), p.from(end)
	}
}

// from returns the text from an offset on.
func (p part) from(offset int) part {
	return part{text: p.text[offset:], line: p.line + bytes.Count(p.text[:offset], []byte("\n"))}
}

// decodeJSONValue decodes valid JSON. What is wrong with its values, such as a key that occurs twice, the
// decoder of YAML finds with its line.
func decodeJSONValue(p part) (value, error) {
	v := value{line: p.line}
	wrong, err := kjson.UnmarshalStrict(p.text, &v.content, kjson.DisallowDuplicateFields)
	if err != nil || len(wrong) > 0 || deeper(v.content, maxDepth) {
		if _, err := decodeAny(p, 0, new(int)); err != nil {
			return value{}, err
		}
		return value{}, &Error{Line: p.line, Err: errors.New("invalid JSON: a number is too large")}
	}
	if object, _ := v.content.(map[string]any); object["items"] != nil {
		v.items = p.itemLines()
	}
	return v, nil
}

// itemLines returns the lines of the elements of the member "items" of a valid object.
func (p part) itemLines() (lines []int) {
	decoder := json.NewDecoder(bytes.NewReader(p.text))
	token := func() json.Token {
		t, _ := decoder.Token()
		return t
	}
	var skipped json.RawMessage
	for token(); decoder.More(); _ = decoder.Decode(&skipped) {
		if token() != "items" {
			continue
		}
		if token() != json.Delim('[') {
			return nil
		}
		for last := 0; decoder.More(); {
			_ = decoder.Decode(&skipped)
			start := int(decoder.InputOffset()) - len(skipped)
			p.line += bytes.Count(p.text[last:start], []byte("\n"))
			lines, last = append(lines, p.line), start
		}
		return lines
	}
	return nil
}

// deeper reports whether values nest deeper than that.
func deeper(v any, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			if depth == 0 || deeper(below, depth-1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(below any) bool { return depth == 0 || deeper(below, depth-1) })
	}
	return false
}

// jsonError gives an error in a string its line.
func jsonError(p part, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) { // io.ErrUnexpectedEOF
		syntax, err = &json.SyntaxError{Offset: int64(len(bytes.TrimSpace(p.text)))},
			errors.New("it ends too early")
	}
	line := p.from(min(int(syntax.Offset), len(p.text))).line
	if strings.Contains(err.Error(), "max depth") {
		return &Error{Line: line, Err: errTooDeep}
	}
	text := err.Error()
	if mayBeSecret(p.text) { // it quotes a character that it does not expect
		text = quotedCharacter.ReplaceAllLiteralString(text, "invalid character ")
	}
	return &Error{Line: line, Err: errors.New("invalid JSON: " + text)}
}

var quotedCharacter = regexp.MustCompile(`invalid character (?s:'.*?'+ )`)
