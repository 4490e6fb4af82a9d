package kyverno

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// decodeSource reads the source of an entry; of several, the first in Kyverno's order.
func decodeSource(f *policydecode.Fields) *entry {
	var out *entry
	var found string
	for _, s := range []struct {
		key    string
		decode func(*policydecode.Fields) *entry
	}{
		{"configMap", decodeConfigMap},
		{"apiCall", decodeAPICall},
		{"globalReference", decodeGlobalReference},
		{"imageRegistry", decodeImageLookup},
		{"variable", decodeVariable},
	} {
		switch {
		case !f.Has(s.key):
		case out != nil:
			f.At(s.key).Refuse("Kyverno", "has no effect beside %s: an entry has exactly one source", found)
		default:
			of := f.At(s.key).Fields()
			out, found = s.decode(of), s.key
			of.Done()
		}
	}
	if out == nil {
		f.Fail("has no source: configMap, apiCall, globalReference, imageRegistry or variable")
	}
	return out
}

// decodeAPICall reads a request to the API server or a web service (pkg/engine/apicall). The default replaces
// a failed request, but not one that is invalid or that this program may not make, nor an answer that is not
// JSON or lacks the jmesPath.
func decodeAPICall(f *policydecode.Fields) *entry {
	call, path, fallback := decodeCall(f), decodeDataPath(f.At("jmesPath")), variables.Decode(f.At("default"))
	load := func(from *Sources, s *variables.Scope) (any, error) {
		r, err := call.render(s)
		if err != nil {
			return nil, fmt.Errorf("failed to substitute variables: %w", err)
		}
		answer, err := call.answer(from, r)
		switch {
		case err == nil:
			return path.pick(s, answer)
		case fallback == nil || from.decisive(err) || errors.Is(err, errUnreadable):
			return nil, fmt.Errorf("failed to fetch data for APICall: %w", err)
		}
		value, err := fallback.Render(s)
		if err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
		return value, nil
	}
	return &entry{
		load: load, notIdempotent: path.notIdempotent,
		asks: func(Globals) []engine.Ask { return []engine.Ask{call.ask("")} },
	}
}

// decodeConfigMap reads {data, metadata} of a ConfigMap without binaryData, as Kyverno does, from the given
// namespace, the policy's own or "default". A Policy may not read elsewhere.
func decodeConfigMap(f *policydecode.Fields) *entry {
	name, in, own := decodeText(f.At("name"), "name: "), decodeText(f.At("namespace"), "namespace: "),
		f.Report.Namespace
	if name.template == nil {
		f.At("name").Fail("is missing")
	}
	load := func(from *Sources, s *variables.Scope) (any, error) {
		name, err := name.render(s)
		if err != nil {
			return nil, err
		}
		namespace, err := in.render(s)
		if err == nil && own != "" && namespace != "" && namespace != own {
			err = fmt.Errorf("namespace: a Policy in namespace %s cannot read from namespace %s", own, namespace)
		}
		if err != nil {
			return nil, err
		}
		return from.configMap(name, cmp.Or(namespace, own, "default"))
	}
	return &entry{load: load, asks: func(Globals) []engine.Ask {
		namespace := cmp.Or(in.written, own, "default")
		return []engine.Ask{{
			Of: engine.AskObjects, What: "ConfigMap " + namespace + "/" + name.written,
			Objects: engine.Selection{
				Version: "v1", Kind: "ConfigMap", Namespace: variables.Plain(namespace),
				Name: variables.Plain(name.written),
			},
		}}
	}}
}

func (from *Sources) configMap(name, namespace string) (any, error) {
	if from.World.Reader == nil {
		return nil, &engine.UnsupportedError{Field: "configMap", Err: errors.New("there is no cluster and no --world to read ConfigMap " + namespace + "/" + name + " from")}
	}
	key := engine.ObjectKey{Version: "v1", Namespace: namespace, Name: name}
	key.Kind = "ConfigMap"
	object, err := from.World.Get(from.Context, key)
	if err != nil {
		return nil, fmt.Errorf("failed to get configmap %s/%s: %w", namespace, name, err)
	}
	return map[string]any{"data": object.Object["data"], "metadata": object.Object["metadata"]}, nil
}

// decodeImageLookup reads a registry's data about an image (pkg/engine/context/loaders/imagedata.go).
func decodeImageLookup(f *policydecode.Fields) *entry {
	f.At("reference").Required()
	place, written, path := f.PathInRule(), decodeText(f.At("reference"), "reference: "),
		decodeDataPath(f.At("jmesPath"))
	if f.Has("imageRegistryCredentials") {
		f.At("imageRegistryCredentials").Lint("has no effect: images are looked up with the user's own docker configuration, over TLS")
	}
	load := func(from *Sources, s *variables.Scope) (any, error) {
		reference, err := written.render(s)
		if err != nil {
			return nil, err
		}
		if from.World.Registry == nil {
			return nil, &engine.UnsupportedError{Field: place, Err: errors.New("images are looked up in registries only with --allow-registry")}
		}
		type key struct{ reference string }
		data, err := engine.Once(from.Context, from.World, key{reference}, func(w *engine.World) (any, error) {
			return imageData(from.Context, w.Registry, reference)
		})
		if err != nil {
			return nil, fmt.Errorf("failed to fetch image descriptor: %s: %w", reference, err)
		}
		return path.pick(s, data)
	}
	return &entry{load: load, notIdempotent: path.notIdempotent, asks: func(Globals) []engine.Ask {
		return []engine.Ask{{Of: engine.AskRegistry, What: written.written}}
	}}
}

func imageData(ctx context.Context, registry engine.ImageRegistry, reference string) (any, error) {
	image, err := registry.Image(ctx, reference)
	if err != nil {
		return nil, err
	}
	data := map[string]any{
		"image":         reference,
		"resolvedImage": image.Resolved,
		"registry":      image.Registry,
		"repository":    image.Repository,
		"identifier":    image.Identifier,
	}
	for name, content := range map[string][]byte{
		"manifestList": image.ManifestList, "manifest": image.Manifest,
		"configData": image.Config,
	} {
		data[name] = nil
		if content == nil {
			continue
		}
		if data[name], err = decodeAnswer(content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return data, nil
}

// decodeVariable reads value, jmesPath and default, combined as in Kyverno: the path applies to the value, or
// else to the whole context; the default replaces a failed path and, without a value, an empty result.
func decodeVariable(f *policydecode.Fields) *entry {
	given, path, fallback := variables.Decode(f.At("value")), decodeDataPath(f.At("jmesPath")),
		variables.Decode(f.At("default"))
	if written, _ := f.Values["jmesPath"].(string); given == nil && written == "" && fallback == nil {
		f.Fail("needs a value, a jmesPath or a default")
	}
	load := func(from *Sources, s *variables.Scope) (any, error) {
		value, err := given.Render(s)
		if err != nil {
			return nil, err
		}
		if path.template != nil {
			query, err := path.expression(s)
			if err != nil {
				return nil, err
			}
			var result any
			if given != nil {
				result, err = query.Search(s.Interpreter(), value)
			} else {
				result, err = s.Query(query)
			}
			if from.decisive(err) || (err != nil && fallback == nil) {
				return nil, err
			}
			if err == nil && (result != nil || given != nil) {
				return notNil(result)
			}
			value = nil
		}
		if value == nil {
			if value, err = fallback.Render(s); err != nil {
				return nil, err
			}
		}
		return notNil(value)
	}
	return &entry{
		load:          load,
		notIdempotent: cmp.Or(path.notIdempotent, given.NotIdempotent(), fallback.NotIdempotent()),
	}
}

func notNil(value any) (any, error) {
	if value == nil {
		return nil, errors.New("evaluated to nil")
	}
	return value, nil
}
