package impact

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The kinds whose objects name the source of a tool's manifests.
const (
	application   = "Application"
	kustomization = "Kustomization"
	helmRelease   = "HelmRelease"
)

// longestSource is the maximum length of a source, in bytes.
const longestSource = 300

// locate sets the Source of a manager to the directory or chart that its object names. If that cannot be
// read, or is ambiguous, the Source stays. The error is the context's.
func (r *Reviewer) locate(ctx context.Context, m *Manager) error {
	if r.Reader == nil || len(validation.IsDNS1123Subdomain(m.by.Name)) > 0 ||
		m.by.Namespace != "" && len(validation.IsDNS1123Label(m.by.Namespace)) > 0 {
		return nil
	}
	found, err := r.read.Do(ctx, m.by, func(ctx context.Context) (any, error) {
		text, err := "", error(nil)
		if u := r.described(ctx, m.by); u != nil {
			text, err = r.sourceOf(ctx, m.by, u)
		}
		if strings.ContainsFunc(text, unicode.IsControl) || len(text) > longestSource {
			text = ""
		}
		return text, err
	})
	if text, _ := found.(string); text != "" {
		m.Source = text
	}
	return err
}

// described returns the object with a key, which may lack the namespace; nil if it cannot be read, or is
// ambiguous.
func (r *Reviewer) described(ctx context.Context, key engine.ObjectKey) *unstructured.Unstructured {
	if key.Namespace != "" {
		u, err := r.Reader.Get(ctx, key)
		if err != nil {
			return nil
		}
		return u
	}
	var found *unstructured.Unstructured
	for u, err := range r.Reader.List(ctx, engine.Selection{Group: key.Group, Kind: key.Kind, Name: key.Name}) {
		if err != nil || found != nil {
			return nil
		}
		found = u
	}
	return found
}

// sourceOf returns the source that the object of a tool names.
//   - https://argo-cd.readthedocs.io/en/stable/operator-manual/application-specification/
//   - https://fluxcd.io/flux/components/kustomize/kustomizations/
//   - https://fluxcd.io/flux/components/helm/helmreleases/
func (r *Reviewer) sourceOf(ctx context.Context, key engine.ObjectKey,
	u *unstructured.Unstructured,
) (string, error) {
	spec := valueOf[map[string]any](u.Object, "spec")
	switch key.Kind {
	case application:
		all := valueOf[[]any](spec, "sources")
		if len(all) == 0 {
			all = []any{
				valueOf[map[string]any](spec, "source"),
				valueOf[map[string]any](spec, "sourceHydrator", "drySource"),
			}
		}
		var out []string
		for _, v := range all {
			source, _ := v.(map[string]any)
			repository := withoutLogin(valueOf[string](source, "repoURL"))
			if chart := valueOf[string](source, "chart"); chart != "" {
				repository = "the chart " + pathInRepository(chart, repository) + " or its values in the Application"
			} else {
				repository = pathInRepository(valueOf[string](source, "path"), repository)
			}
			out = append(out, repository)
		}
		return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), ", "), ctx.Err()
	case kustomization:
		from := r.described(ctx, referred(u, valueOf[map[string]any](spec, "sourceRef")))
		if from == nil {
			return "", ctx.Err()
		}
		return pathInRepository(valueOf[string](spec, "path"),
			withoutLogin(valueOf[string](from.Object, "spec", "url"))), ctx.Err()
	case helmRelease:
		text := "the HelmRelease"
		if chart := valueOf[string](spec, "chart", "spec", "chart"); chart != "" {
			text += " or its chart " + chart
		}
		for _, m := range Managed(u) { // the HelmRelease itself may be managed
			if m.by.Kind == application || m.by.Kind == kustomization {
				general := m.Source
				if err := r.locate(ctx, &m); err != nil || m.Source == general {
					return text, err
				}
				return fmt.Sprintf("%s (%s)", text, m.Source), nil
			}
		}
		return text, ctx.Err()
	}
	return "", nil
}

// referred returns the key of the object from which an object of Flux reads its manifests.
func referred(u *unstructured.Unstructured, reference map[string]any) engine.ObjectKey {
	key := engine.ObjectKey{Namespace: u.GetNamespace(), Name: valueOf[string](reference, "name")}
	if namespace := valueOf[string](reference, "namespace"); namespace != "" {
		key.Namespace = namespace
	}
	key.Group, key.Kind = "source.toolkit.fluxcd.io", valueOf[string](reference, "kind")
	return key
}

// pathInRepository returns "PATH in REPOSITORY", or "" without a repository.
func pathInRepository(path, repository string) string {
	path = strings.Trim(strings.TrimPrefix(path, "./"), "/")
	if path == "" || path == "." || repository == "" {
		return repository
	}
	return path + " in " + repository
}

// withoutLogin returns the address of a repository without its login and its query, which may have a token;
// empty if the login is ambiguous. SSH keeps its user, which is the same for all.
func withoutLogin(text string) string {
	text, _, _ = strings.Cut(text, "?")
	text, _, _ = strings.Cut(text, "#")
	scheme, rest, found := strings.Cut(text, "://")
	if scheme += "://"; !found {
		scheme, rest = "", text
	}
	i := strings.LastIndexByte(rest, '@')
	if i < 0 || rest[:i] == "git" {
		return scheme + rest
	}
	if strings.Contains(rest[:i], "/") {
		return ""
	}
	return scheme + rest[i+1:]
}
