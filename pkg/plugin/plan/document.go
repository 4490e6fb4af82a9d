package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Document is a policy or an input in files.
type Document struct {
	Object engine.ObjectKey `json:"object"`
	Origin string           `json:"origin"`
	// Digest is over the content, without what the server adds.
	// A Secret has none.
	Digest string `json:"digest,omitempty"`
	// Installed reports that the document comes from the cluster: it is read again
	// there. Content is that of any other.
	Installed bool      `json:"installed,omitempty"`
	Content   diff.Part `json:"content,omitempty"`
}

// NewRun is a run that evaluates no policies.
func NewRun(here Cluster, version string, created time.Time) Run {
	return Run{Cluster: here, Version: version, Created: created, Documents: []Document{}, Digest: digestOfAll(nil)}
}

// DocumentsOf returns the documents of a run for a file, and the digest of all of
// them. Those for which installed holds are recorded by their digest alone. It is an error if the policies read a Secret
// from a file: a plan cannot hold it, and without it the run cannot be repeated.
func DocumentsOf(all []engine.Document, installed func(engine.Document) bool) ([]Document, string, error) {
	out := make([]Document, len(all))
	for i, d := range all {
		out[i] = Document{Object: d.Key, Origin: d.Origin, Installed: installed(d)}
		if !out[i].Installed {
			if d.Key.IsSecret() {
				return nil, "", fmt.Errorf("%s: Secret %s is read by the policies from a file, and a plan holds no Secrets; create it in the cluster instead", d.Origin, d.Key.Name)
			}
			out[i].Content = d.Object().Object
		}
		var err error
		if out[i].Digest, err = digestOf(d.Object().Object); err != nil {
			return nil, "", fmt.Errorf("%s: %w", d.Origin, err)
		}
	}
	return out, digestOfAll(out), nil
}

// digestOf returns the digest of an object without what a server adds.
func digestOf(object map[string]any) (string, error) {
	content := diff.WithoutBookkeeping(object)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "uid")
		delete(metadata, "creationTimestamp")
		content = maps.Clone(content)
		content["metadata"] = metadata
		delete(content, "status")
	}
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// digestOfAll is over the documents in their order.
func digestOfAll(all []Document) string {
	h := sha256.New()
	for _, d := range all {
		write(h, d.Object.GroupVersionKind().GroupVersion().String(), d.Object.Kind, d.Object.Namespace, d.Object.Name, d.Digest)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// write adds texts so that no two lists of them give the same.
func write(h hash.Hash, texts ...string) {
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
}

// Recorded are the documents that the file itself holds.
func (r *Run) Recorded() []engine.Document {
	var out []engine.Document
	for _, d := range r.Documents {
		if !d.Installed {
			out = append(out, d.engine())
		}
	}
	return out
}

func (d *Document) engine() engine.Document {
	return engine.NewDocument(&unstructured.Unstructured{Object: d.Content}, d.Origin)
}

// Restore returns the documents of a run in their order, given what is installed in
// the cluster now of the kinds that were read there. It is an error if that has changed.
func (r *Run) Restore(installed []engine.Document) ([]engine.Document, error) {
	here := map[engine.ObjectKey]engine.Document{}
	for _, d := range installed {
		here[d.Key.Named()] = d
	}
	out := make([]engine.Document, 0, len(r.Documents))
	var changed, gone, added []string
	known := map[engine.ObjectKey]bool{}
	for _, d := range r.Documents {
		key := d.Object.Named()
		known[key] = true
		if !d.Installed {
			out = append(out, d.engine())
			continue
		}
		now, ok := here[key]
		if !ok {
			gone = append(gone, key.String())
			continue
		}
		digest, err := digestOf(now.Object().Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if digest != d.Digest {
			changed = append(changed, key.String())
		}
		out = append(out, now)
	}
	for _, d := range installed {
		if key := d.Key.Named(); !known[key] {
			added = append(added, key.String())
		}
	}
	var parts []string
	for _, p := range []struct {
		what string
		keys []string
	}{{"changed", changed}, {"gone", gone}, {"new", added}} {
		if len(p.keys) > 0 {
			parts = append(parts, p.what+": "+strings.Join(p.keys, ", "))
		}
	}
	if len(parts) > 0 {
		return nil, fmt.Errorf("the policies in the cluster have changed since (%s); make it again", strings.Join(parts, "; "))
	}
	return out, nil
}
