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

// decodeJSON decodes consecutive JSON values.
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

// from returns the rest of a part after an offset.
func (p part) from(offset int) part {
	return part{text: p.text[offset:], line: p.line + bytes.Count(p.text[:offset], []byte("\n"))}
}

// decodeJSONValue decodes valid JSON. Errors in its values, such as a duplicate key, are found by the
// decoder of YAML, with their line.
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

// itemLines returns the lines of the elements of "items" in a valid object.
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

// deeper reports whether values nest more than depth levels deep.
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

// jsonError adds the line to an error.
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
	if mayBeSecret(p.text) { // the error quotes an unexpected character
		text = quotedCharacter.ReplaceAllLiteralString(text, "invalid character ")
	}
	return &Error{Line: line, Err: errors.New("invalid JSON: " + text)}
}

var quotedCharacter = regexp.MustCompile(`invalid character (?s:'.*?'+ )`)
