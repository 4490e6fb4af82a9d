package cel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxDocument bounds the size of a patched object, in bytes: an API server accepts no
// larger body.
const maxDocument = 3 << 20

// maxOperations bounds a JSON patch, as an API server does for those of its clients.
const maxOperations = 10_000

// patch applies a JSON patch, which is a list of JSONPatch values, to the object of the
// evaluation, with the library that an API server uses. Where a test operation does not hold, it
// returns the very object that it was given. Warnings say what other versions of an API
// server do differently.
func (e *Evaluation) patch(list ref.Val) (Result, error) {
	in := &e.activation.input
	operations, places, warnings, err := operationsOf(list)
	if err != nil {
		return Result{}, err
	}
	known := in.Checked.of(in.Object)
	if known.bytes == 0 && places != nil {
		read, err := measure(e.budget, in.Object)
		if err != nil {
			return Result{}, err
		}
		known.object, known.bytes = in.Object, read.json()
		in.Checked.remember(known)
	}
	p, err := e.patchPart(places, operations)
	bytes := known.bytes + p.grown + 2*len(operations)
	if places != nil && bytes > maxDocument { // or less, since it is an estimate
		places = nil
		p, err = e.patchPart(nil, operations)
	}
	if places == nil {
		bytes = p.bytes
	}
	if err != nil && places == nil { // the next patch need not read all of it
		known.object, known.bytes = in.Object, bytes
		in.Checked.remember(known)
	}
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed):
		return Result{Object: in.Object, Warnings: warnings, Read: p.read, Written: p.read}, nil
	case err != nil:
		return Result{}, fmt.Errorf("JSON Patch: %w", err)
	}
	draft := in.Draft
	if draft == nil {
		draft = &engine.Draft{} // which copies each map once
	}
	out := putting{maps: draft, lists: draft}.put(places, in.Object, p.written).(map[string]any)
	if places == nil && reflect.DeepEqual(in.Object, out) {
		out = in.Object
	}
	if in.Checked != nil {
		part, written := map[string]any(nil), size{}
		if places != nil && known.fits() {
			part, _ = places.checked(p.written, out).(map[string]any)
			if written, err = measure(e.budget, part); err != nil {
				return Result{}, err
			}
		}
		*in.Checked = known.patched(out, bytes, part, written)
	}
	return Result{Object: out, Warnings: warnings, Read: p.read, Written: p.written}, nil
}

// patchedPart is the part of an object that a JSON patch is about, before and after it.
type patchedPart struct {
	read, written map[string]any
	bytes, grown  int // of JSON after it, or before it where it fails; and by how much there is more after it
}

func (e *Evaluation) patchPart(places touched, operations jsonpatch.Patch) (patchedPart, error) {
	live := e.activation.input.Object
	p := patchedPart{read: live}
	if places != nil {
		p.read, _ = places.part(live).(map[string]any)
		for _, name := range []string{"apiVersion", "kind"} { // which make it an object
			if value, ok := live[name]; ok {
				p.read[name] = value
			}
		}
	}
	document, err := json.Marshal(p.read)
	if err != nil {
		return p, err
	}
	p.bytes = len(document)
	if document, err = applyOperations(e.budget, document, operations); err != nil {
		return p, err
	}
	p.bytes, p.grown = len(document), max(len(document)-p.bytes, 0)
	patched := asObject(nil)
	if err := patched.UnmarshalJSON(document); err != nil {
		return p, fmt.Errorf("the result is no object: %w", err)
	}
	p.written = patched.Object
	return p, nil
}

func operationsOf(list ref.Val) (operations jsonpatch.Patch, places touched, warnings []engine.Warning, err error) {
	l, ok := list.(traits.Lister)
	if !ok {
		return nil, nil, nil, fmt.Errorf("a JSON patch must be a list of JSONPatch, not %s", list.Type().TypeName())
	}
	var pointers []string
	for it := l.Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		p, ok := item.(*mutation.JSONPatchVal)
		if !ok {
			return nil, nil, nil, fmt.Errorf("a JSON patch must be a list of JSONPatch, not of %s", item.Type().TypeName())
		}
		operation, err := operationOf(p)
		if err != nil {
			return nil, nil, nil, err
		}
		pointers = append(pointers, p.Path)
		if p.From != "" {
			pointers = append(pointers, p.From)
		}
		if operations = append(operations, operation); len(operations) > maxOperations {
			return nil, nil, nil, &engine.LimitError{What: "operations of a JSON patch", Max: maxOperations}
		}
		if len(warnings) == 0 && p.Val != nil && holdsObjectInList(p.Val) {
			warnings = append(warnings, objectInList)
		}
	}
	return operations, touchedBy(pointers), warnings, nil
}

// operationOf returns an operation as the library holds it, with null as a value: the
// library's own decoder takes null for no value.
func operationOf(p *mutation.JSONPatchVal) (jsonpatch.Operation, error) {
	operation := jsonpatch.Operation{}
	set := func(name string, value any) error {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("the %s of the JSON patch for %s is no JSON: %w", name, p.Path, err)
		}
		operation[name] = (*json.RawMessage)(&raw)
		return nil
	}
	if p.From != "" {
		if err := set("from", p.From); err != nil {
			return nil, err
		}
	}
	if p.Val != nil {
		value, err := patchValue(p.Val)
		if err != nil {
			return nil, fmt.Errorf("the value of the JSON patch for %s: %w", p.Path, err)
		}
		if err := set("value", value); err != nil {
			return nil, err
		}
	}
	return operation, cmp.Or(set("op", p.Op), set("path", p.Path))
}

func patchValue(v ref.Val) (any, error) {
	if o, ok := v.(*object); ok {
		if err := o.checkNames(); err != nil {
			return nil, err
		}
	}
	return v.ConvertToNative(reflect.TypeFor[*structpb.Value]())
}

// applyOperations applies a patch in pieces that end with a copy: an operation that
// copies the object into itself doubles it, and a few dozen of them would fill any
// memory.
func applyOperations(b *engine.Budget, document []byte, all jsonpatch.Patch) ([]byte, error) {
	for len(all) > 0 {
		if err := payOperations(b, document, all); err != nil {
			return nil, err
		}
		n := 1
		for n < len(all) && all[n-1].Kind() != "copy" {
			n++
		}
		var err error
		if document, err = all[:n].Apply(document); err != nil {
			return nil, err
		}
		if len(document) > maxDocument {
			return nil, &engine.LimitError{What: "bytes of an object that a JSON patch makes", Max: maxDocument}
		}
		all = all[n:]
	}
	return document, nil
}

// payOperations pays for reading the document, and for the first operations up to a copy:
// one that compares, moves or copies may read all of it, and another one shifts a list.
func payOperations(b *engine.Budget, document []byte, all jsonpatch.Patch) error {
	steps := len(document)
	for _, o := range all {
		switch o.Kind() {
		case "test", "move":
			steps += 100 + len(document)/4
		default:
			steps += 100 + len(document)/64
		}
		if o.Kind() == "copy" {
			return b.Spend(steps)
		}
	}
	return b.Spend(steps)
}

// objectInList is the warning about what API servers before 1.37 cannot convert
// (kubernetes#142181).
const objectInList = engine.Warning("a list that holds Object{...} as the value of a JSONPatch makes API servers before 1.37 panic: " +
	"write the elements as maps, or use an apply configuration")

// holdsObjectInList reports whether an Object is an element of a list or a map.
func holdsObjectInList(v ref.Val) bool {
	switch v := v.(type) {
	case traits.Lister:
		if isNative(v) {
			return false
		}
		for it := v.Iterator(); it.HasNext() == types.True; {
			if isObject(it.Next()) {
				return true
			}
		}
	case traits.Mapper:
		if isNative(v) {
			return false
		}
		for it := v.Iterator(); it.HasNext() == types.True; {
			if isObject(v.Get(it.Next())) {
				return true
			}
		}
	}
	return false
}

func isObject(v ref.Val) bool {
	_, ok := v.(*object)
	return ok || holdsObjectInList(v)
}
