package patching

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-openapi/jsonpointer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// JSONPatch is a list of operations. The zero value changes nothing.
type JSONPatch struct {
	operations []operation
	old        bool // of Kyverno 1.0 to 1.5
}

type operation struct {
	op, path string   // as written, for messages
	to, from []string // nil if missing
	value    any
}

// The operations of RFC 6902. Kyverno's admission accepts only the first three, but its engine has all.
const (
	opAdd     = "add"
	opReplace = "replace"
	opRemove  = "remove"
	opTest    = "test"
	opMove    = "move"
	opCopy    = "copy"
)

// OperationError is an operation that cannot be read or applied.
type OperationError struct {
	Index    int    // in the list, from 0
	Op, Path string // empty if they could not be read
	Err      error
}

// Error names the operation and the reason: "operation 1 (add /spec/x): reason".
func (e *OperationError) Error() string {
	what := strings.TrimSpace(e.Op + " " + e.Path)
	if what == "" {
		return fmt.Sprintf("operation %d: %v", e.Index, e.Err)
	}
	return fmt.Sprintf("operation %d (%s): %v", e.Index, what, e.Err)
}

// Unwrap returns the reason.
func (e *OperationError) Unwrap() error { return e.Err }

// parserPrefix matches a parser's prefix, whose line numbers are not the policy's.
var parserPrefix = regexp.MustCompile(`^(error converting YAML to JSON: )?(yaml: )?(line \d+: )?`)

// ParseJSONPatch parses a list of operations in YAML or JSON. The error is an *OperationError if it is about
// one operation.
func ParseJSONPatch(text string) (JSONPatch, error) {
	var decoded any
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(raw, &decoded)
	}
	if err != nil {
		return JSONPatch{}, errors.New("a JSON patch must be a list of operations in YAML or JSON: " + parserPrefix.ReplaceAllString(err.Error(), ""))
	}
	var list []any
	switch d := decoded.(type) {
	case []any:
		list = d
	case map[string]any:
		return JSONPatch{}, errors.New("a JSON patch must be a list of operations, but it is a single one: put `- ` before it")
	case nil:
		return JSONPatch{}, errors.New("a JSON patch must be a list of operations, but it is empty")
	default:
		return JSONPatch{}, fmt.Errorf("a JSON patch must be a list of operations, but it is the value %v", d)
	}
	return DecodeJSONPatch(list)
}

// DecodeJSONPatch reads a decoded list of operations. The error is an *OperationError.
func DecodeJSONPatch(list []any) (JSONPatch, error) {
	p := JSONPatch{operations: make([]operation, 0, len(list))}
	for i, element := range list {
		o, err := parseOperation(element)
		if err != nil {
			return JSONPatch{}, &OperationError{Index: i, Op: o.op, Path: o.path, Err: err}
		}
		p.operations = append(p.operations, o)
	}
	return p, nil
}

// DecodeOldPatches reads mutate.patches of Kyverno 1.0 to 1.5. A path may end with a slash, and a list added
// at an index is inserted element by element. Each operation is tried; a remove that cannot be applied is
// skipped. The error joins an *OperationError for each invalid one.
func DecodeOldPatches(list []any) (JSONPatch, error) {
	p := JSONPatch{old: true}
	var errs []error
	for i, element := range list {
		fields, _ := element.(map[string]any)
		// A lone slash is a mistake, not a path to the whole object.
		if path, isText := fields["path"].(string); isText && path != "/" {
			element = diff.With(fields, "path", strings.TrimSuffix(path, "/"))
		}
		o, err := parseOperation(element)
		if err == nil && o.op != opAdd && o.op != opReplace && o.op != opRemove {
			err = errors.New("the operations of patches are add, replace and remove")
		}
		if err != nil {
			errs = append(errs, &OperationError{Index: i, Op: o.op, Path: o.path, Err: err})
		}
		p.operations = append(p.operations, o)
	}
	return p, engine.JoinErrors(errs)
}

func parseOperation(element any) (o operation, err error) {
	fields, ok := element.(map[string]any)
	if !ok {
		return o, errors.New("an operation must be a map with op, path and, for most, value")
	}
	o.op, _ = fields["op"].(string)
	path, hasPath := fields["path"].(string)
	from, hasFrom := fields["from"].(string)
	moves := o.op == opMove || o.op == opCopy
	o.path = path
	switch o.op {
	case opAdd, opReplace, opTest:
		if o.value, ok = fields["value"]; !ok {
			return o, errors.New("it has no value")
		}
	case opMove, opCopy, opRemove:
	case "":
		return o, errors.New("it has no op")
	default:
		return o, errors.New("there is no such operation; the operations are add, replace, remove, test, move and copy")
	}
	if moves && !hasFrom {
		return o, errors.New("it has no from path")
	}
	if !hasPath {
		return o, errors.New("it has no path")
	}
	if moves {
		if o.from, err = parsePointer(from); err != nil {
			return o, fmt.Errorf("from: %w", err)
		}
	}
	if o.to, err = parsePointer(path); err != nil {
		return o, err
	}
	_, isMap := o.value.(map[string]any) // the object stays an object
	switch {
	case o.op == opMove && len(o.from) == 0:
		err = errors.New("the whole object cannot be moved")
	case len(o.to) > 0, o.op == opTest, isMap:
	case moves || o.op == opRemove:
		err = errors.New("an empty path stands for the whole object, which this operation cannot change")
	default:
		err = errors.New("an empty path stands for the whole object, which must be a map")
	}
	return o, err
}

// parsePointer splits a JSON pointer into unescaped tokens. An empty token is an error: no Kubernetes object
// has an empty key.
func parsePointer(path string) ([]string, error) {
	if path == "" {
		return []string{}, nil
	}
	if path[0] != '/' {
		return nil, fmt.Errorf("the path must begin with /: /%s", path)
	}
	if n := strings.Count(path, "/"); n > limit.Depth { // add creates missing parents
		return nil, fmt.Errorf("the path has %d keys, more than the limit of %d", n, limit.Depth)
	}
	tokens := strings.Split(path[1:], "/")
	for i, t := range tokens {
		if t == "" {
			return nil, errors.New("the path holds an empty key: a / at its end, or two in a row")
		}
		tokens[i] = jsonpointer.Unescape(t)
	}
	return tokens, nil
}
