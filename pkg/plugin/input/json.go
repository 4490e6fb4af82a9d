package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	kjson "sigs.k8s.io/json"
)

var jsonStart = regexp.MustCompile(`^\s*\{\s*["}]`)

func looksLikeJSON(text []byte) bool { return jsonStart.Match(text) }

// jsonReader decodes JSON token by token, for the sake of lines and of
// duplicate keys, which encoding/json would silently merge.
type jsonReader struct {
	text    []byte
	decoder *json.Decoder
	line    int // of the offset that was counted up to
	counted int64
}

// decodeJSON decodes JSON objects that stand one after the other. One without items, which have lines of their own, is
// decoded at once, in less than half of the time.
func decodeJSON(p part) ([]value, error) {
	var content map[string]any
	if !bytes.Contains(p.text, []byte(`"items"`)) {
		wrong, err := kjson.UnmarshalStrict(p.text, &content, kjson.DisallowDuplicateFields)
		if err == nil && len(wrong) == 0 && content != nil && !deeper(content, maxDepth) {
			start := bytes.IndexByte(p.text, '{')
			return []value{{content: content, line: p.line + bytes.Count(p.text[:start], []byte("\n"))}}, nil
		}
	}
	r := &jsonReader{text: p.text, decoder: json.NewDecoder(bytes.NewReader(p.text)), line: p.line}
	r.decoder.UseNumber()
	var values []value
	for {
		token, err := r.decoder.Token()
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, r.error(err)
		}
		v := value{line: r.here()}
		if v.content, err = r.value(token, 0, &v.items); err != nil {
			return nil, r.error(err)
		}
		values = append(values, v)
	}
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

// value decodes what a token starts. items takes the lines of the elements of
// the member "items"; it is nil below the top level.
func (r *jsonReader) value(token json.Token, depth int, items *[]int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return r.object(depth, items)
		}
		return r.list(depth, nil)
	case json.Number:
		return number(token)
	default:
		return token, nil
	}
}

func (r *jsonReader) object(depth int, items *[]int) (any, error) {
	out := map[string]any{}
	for {
		token, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		key, isKey := token.(string)
		if !isKey {
			return out, nil // the closing brace
		}
		if _, twice := out[key]; twice {
			return nil, &duplicateError{key}
		}
		if token, err = r.decoder.Token(); err != nil {
			return nil, err
		}
		if token == json.Delim('[') && key == "items" {
			out[key], err = r.list(depth+1, items)
		} else {
			out[key], err = r.value(token, depth+1, nil)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (r *jsonReader) list(depth int, lines *[]int) (any, error) {
	out := []any{}
	for {
		token, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		if token == json.Delim(']') {
			return out, nil
		}
		if lines != nil {
			*lines = append(*lines, r.here())
		}
		element, err := r.value(token, depth+1, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, element)
	}
}

// here is the line of the token that was read last.
func (r *jsonReader) here() int {
	return r.lineOf(r.decoder.InputOffset())
}

func (r *jsonReader) lineOf(offset int64) int {
	if offset = min(offset, int64(len(r.text))); offset > r.counted {
		r.line += bytes.Count(r.text[r.counted:offset], []byte("\n"))
		r.counted = offset
	}
	return r.line
}

// error gives an error its line.
func (r *jsonReader) error(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Line: r.lineOf(int64(len(bytes.TrimSpace(r.text)))), Err: errors.New("invalid JSON: it ends too early")}
	case errors.As(err, &syntax):
		text := syntax.Error()
		if mayBeSecret(r.text) { // it quotes a character that it does not expect
			text = quotedCharacter.ReplaceAllLiteralString(text, "invalid character ")
		}
		return &Error{Line: r.lineOf(syntax.Offset), Err: errors.New("invalid JSON: " + text)}
	}
	return &Error{Line: r.here(), Err: err}
}

var quotedCharacter = regexp.MustCompile(`invalid character (?s:'.*?'+ )`)

// number is an int64 where the text is an integer that fits, as
// k8s.io/apimachinery decodes it.
func number(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", n)
	}
	return f, nil
}
