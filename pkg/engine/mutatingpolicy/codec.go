package mutatingpolicy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// codec reads and writes JSON and YAML like Kyverno, with numbers as doubles, but limits the input to the
// size of a server's objects.
type codec struct{}

// Unmarshal reads JSON.
func (codec) Unmarshal(content []byte) (any, error) {
	return parsed("json.unmarshal", content, json.Unmarshal)
}

// Marshal writes JSON with sorted keys.
func (codec) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

// Parse reads YAML. The parser refuses multiplying aliases.
func (codec) Parse(content []byte) (any, error) {
	return parsed("yaml.parse", content, func(content []byte, v any) error { return yaml.Unmarshal(content, v) })
}

func parsed(function string, content []byte, read func([]byte, any) error) (v any, err error) {
	if len(content) > maxUnpacked {
		err = &limit.Error{What: "bytes of text to parse", Max: maxUnpacked}
	} else {
		err = read(content, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", function, err)
	}
	return v, nil
}

// maxUnpacked bounds the output of gzip.decompress() and the input of the JSON and YAML parsers, in bytes: no
// server object is bigger.
const maxUnpacked = 2 << 20

// gzipOptions declare gzip.compress(text) and gzip.decompress(bytes).
func gzipOptions() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Function("gzip.decompress",
			cel.Overload("decompress_bytes_string", []*cel.Type{cel.BytesType}, cel.StringType,
				cel.UnaryBinding(decompress))),
		cel.Function("gzip.compress", cel.Overload("compress_any_bytes", []*cel.Type{cel.DynType}, cel.BytesType,
			cel.UnaryBinding(compress))),
	}
}

func decompress(packed ref.Val) ref.Val {
	r, err := gzip.NewReader(bytes.NewReader(packed.Value().([]byte)))
	if err != nil {
		return failed("gzip.decompress", err)
	}
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if len(out) > maxUnpacked {
		err = &limit.Error{What: "bytes of unpacked data", Max: maxUnpacked}
	}
	if err != nil {
		return failed("gzip.decompress", err)
	}
	return types.String(out)
}

// compress packs a string or the like. Equal strings give equal bytes, without timestamps.
func compress(value ref.Val) ref.Val {
	text, err := value.ConvertToNative(reflect.TypeFor[string]())
	if err != nil {
		return failed("gzip.compress", err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err = io.WriteString(w, text.(string))
	if err = errors.Join(err, w.Close()); err != nil {
		return failed("gzip.compress", err)
	}
	return types.Bytes(out.Bytes())
}
