package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/intent"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/yamltext"
)

// namePrinter prints the names of the changed objects as `kubectl -o name` does:
// "deployment.apps/web". As there, the namespace is not a part of it; one that is
// piped on belongs beside it with -n.
type namePrinter struct{ Options }

// Print prints the name of an object that would change.
func (p *namePrinter) Print(c engine.Change) error {
	if !c.Changed() {
		return nil
	}
	_, err := fmt.Fprintln(p.Out, resourceName(c.Subject))
	return err
}

// Close has nothing to add.
func (p *namePrinter) Close(engine.Summary) error { return nil }

// manifestPrinter prints the changed objects, as a YAML stream. They keep their
// uid, so that to apply them fails where the object was replaced meanwhile.
type manifestPrinter struct {
	Options
	printed bool
}

// maskedNote stands above a manifest that must not be applied.
const maskedNote = "# Secret values are masked, do not apply: --show-secrets prints them\n"

// Print prints an object that would change.
func (p *manifestPrinter) Print(c engine.Change) error {
	p.learn(&c)
	if !c.Changed() || c.After == nil {
		return nil
	}
	object := trim(c.After, hidden(bookkeeping(), c.Fields))
	masked := p.Masker.Object(object)
	out, err := yamltext.Marshal(masked.Object)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Subject, err)
	}
	var b bytes.Buffer
	if p.printed {
		b.WriteString("---\n")
	}
	if masked != object {
		b.WriteString(maskedNote)
	}
	b.Write(out)
	p.printed = true
	_, err = p.Out.Write(b.Bytes())
	return err
}

// Close has nothing to add.
func (p *manifestPrinter) Close(engine.Summary) error { return nil }

// patchPrinter prints an RFC 6902 patch for each changed object: a stream of JSON
// values, one a line, each naming its object.
type patchPrinter struct{ Options }

type objectPatch struct {
	Object objectRef          `json:"object"`
	Patch  []intent.Operation `json:"patch"`
}

// Print prints the patch of an object that would change. An object that is not
// there yet is added whole.
func (p *patchPrinter) Print(c engine.Change) error {
	p.learn(&c)
	if !c.Changed() {
		return nil
	}
	out, err := marshal(objectPatch{Object: refOf(c.Subject), Patch: p.patch(&c)}, "")
	if err != nil {
		return fmt.Errorf("%s: writing JSON: %w", c.Subject, err)
	}
	_, err = p.Out.Write(append(out, '\n'))
	return err
}

// Close has nothing to add.
func (p *patchPrinter) Close(engine.Summary) error { return nil }

// patch compares the objects as they are, and masks the values after that: two
// values that look alike behind their masks still differ.
func (p *patchPrinter) patch(c *engine.Change) []intent.Operation {
	before, after := c.Before, c.After
	switch {
	case after == nil:
		return []intent.Operation{{Op: "remove"}}
	case before == nil:
		return []intent.Operation{{Op: "add", Value: p.Masker.Object(after).Object}}
	}
	operations := intent.Operations(before.Object, after.Object)
	for i := range operations {
		o := &operations[i]
		names := pointerNames(o.Path, after)
		_, o.Value = p.Masker.Value(after, names, nil, o.Value)
		o.Path = p.pointer(o.Path)
	}
	return operations
}

// pointer masks learned values in the names of a JSON pointer.
func (o *Options) pointer(path string) string {
	tokens := strings.Split(path, "/")
	for i, t := range tokens {
		tokens[i] = o.Masker.Name(t)
	}
	return strings.Join(tokens, "/")
}

var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~") //nolint:gochecknoglobals // an immutable table

// pointerNames are the fields of a JSON pointer up to the first list element.
func pointerNames(path string, object *unstructured.Unstructured) []string {
	var names []string
	var at any = object.Object
	for _, token := range strings.Split(path, "/")[1:] {
		fields, ok := at.(map[string]any)
		if !ok {
			break
		}
		name := pointerUnescaper.Replace(token)
		names = append(names, name)
		at = fields[name]
	}
	return names
}

// marshal is JSON that is easy to read and harmless to look at.
func marshal(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return harmlessJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
