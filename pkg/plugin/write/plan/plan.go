// Package plan stores the result of a preview, so that exactly these changes can be applied later, or shown
// again without a cluster.
//
// A Plan is a JSON document: its Run has the cluster, the policies and the selection of objects, so that it
// can be repeated; an Entry is an object before and after. Its Partial holds only the changed parts, and
// distinguishes whole lists from single elements, so that a change can be compared, undone and printed
// without the object.
//
// A plan holds no values of Secrets. A field with such a value is Withheld: it is named, and another
// evaluation derives its value.
//
// A plan is an untrusted file: its size, depth and number of fields are bounded, and facts about the cluster
// are read from the cluster.
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

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// The type of a plan file. Journals have the same version, since they hold the entries of a plan; a change of
// either requires a new version.
const (
	group      = "mutate.kubectl.dev"
	APIVersion = group + "/v1alpha2"
	Kind       = "Plan"
)

// Plan is the result of a preview.
type Plan struct {
	Run
	// Command has the arguments of the program, without credentials, to make the plan again. It is empty if
	// standard input was read.
	Command []string `json:"command,omitempty"`
	// Summary counts all evaluated objects, also the unchanged ones.
	Summary evaluation.Summary `json:"summary"`
	// Incomplete is set if a rule failed, or a part of the cluster could not be read.
	Incomplete bool `json:"incomplete,omitempty"`
	// Problem is the reason why the cluster was not, or not fully, evaluated. Its plan has no entries, and
	// keeps its place in a directory.
	Problem string `json:"problem,omitempty"`
	// Entries lists the objects with changes or other results, in the order of the preview.
	Entries []*Entry `json:"entries,omitempty"`
}

// NotEvaluated returns the Problem as an error, or nil.
func (p *Plan) NotEvaluated() error {
	if p.Problem == "" {
		return nil
	}
	return fmt.Errorf("the cluster was not evaluated when the plan was made: %.400s; preview it again", p.Problem)
}

// Run has the circumstances of an evaluation, so that it can be repeated with the same result.
type Run struct {
	Cluster Cluster `json:"cluster"`
	// Version is the program's.
	Version string `json:"version"`
	// Created is the clock of the evaluation, and Seed its source of random values.
	Created time.Time `json:"created"`
	Seed    uint64    `json:"seed,string"`
	Choice  Choice    `json:"choice"`
	// Documents lists the policies and their inputs in the order of compilation. Digest covers all of them.
	Documents []Document `json:"documents"`
	Digest    string     `json:"digest"`
}

// Cluster identifies a cluster. Unknown fields are empty.
type Cluster struct {
	// UID of the Namespace kube-system, which only a new cluster changes.
	UID     types.UID `json:"uid,omitempty"`
	Server  string    `json:"server,omitempty"`
	Context string    `json:"context,omitempty"` // of the kubeconfig
	User    string    `json:"user,omitempty"`
}

// Choice is the user's selection of policies and objects.
type Choice struct {
	Types []string `json:"types,omitempty"` // TYPE and TYPE/NAME
	// Namespace has one or more namespaces, separated by commas; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Exclude and ExcludeNamespaces, as typed.
	Exclude           []string `json:"exclude,omitempty"`
	ExcludeNamespaces []string `json:"excludeNamespaces,omitempty"`

	ClusterScoped bool   `json:"clusterScoped,omitempty"`
	Selector      string `json:"selector,omitempty"`
	FieldSelector string `json:"fieldSelector,omitempty"`
	// Percent and PercentSeed as in engine.Scope.
	Percent     int    `json:"percent,omitempty"`
	PercentSeed string `json:"percentSeed,omitempty"`
	// Shard as in engine.Scope.
	Shard engine.Shard `json:"shard,omitzero"`

	Operation engine.Operation `json:"operation"`
	User      string           `json:"requestUser,omitempty"`
	Groups    []string         `json:"requestGroups,omitempty"`

	Only     []string `json:"only,omitempty"`
	Skip     []string `json:"skip,omitempty"`
	Annotate bool     `json:"annotate,omitempty"`
	// AssumeBinding as in engine.Compilation.
	AssumeBinding bool `json:"assumeBinding,omitempty"`
	// FromCluster is set if installed policies were evaluated too.
	FromCluster bool `json:"fromCluster,omitempty"`
	// AllowHTTP and AllowRegistry were allowed to the policies. A plan grants neither: the user must allow
	// them again to apply it.
	AllowHTTP     bool `json:"allowHTTP,omitempty"`
	AllowRegistry bool `json:"allowRegistry,omitempty"`
}

// Document is a policy or an input in files.
type Document struct {
	Object engine.ObjectKey `json:"object"`
	Origin string           `json:"origin"`
	// Digest of the content without the server's fields; empty for a Secret.
	Digest string `json:"digest,omitempty"`
	// Installed is set for a document from the cluster, which is read again there. Only other documents have
	// Content.
	Installed bool      `json:"installed,omitempty"`
	Content   diff.Part `json:"content,omitempty"`
}

// NewRun returns a run without policies.
func NewRun(here Cluster, version string, created time.Time) Run {
	return Run{
		Cluster: here, Version: version, Created: created, Documents: []Document{},
		Digest: digestOfAll(nil),
	}
}

// DocumentsOf returns the documents of a run for a file, and the digest of all. For installed documents only
// the digest is recorded. It fails if the policies read a Secret from a file: a plan cannot hold it, and the
// run cannot be repeated without it.
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

// digestOf returns the digest of an object without the server's fields.
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

// digestOfAll returns the digest of the documents in their order.
func digestOfAll(all []Document) string {
	h := sha256.New()
	for _, d := range all {
		write(h, d.Object.GroupVersionKind().GroupVersion().String(), d.Object.Kind, d.Object.Namespace,
			d.Object.Name, d.Digest)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// write adds strings so that different lists have different digests.
func write(h hash.Hash, texts ...string) {
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
}

// Recorded returns the documents in the file itself.
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

// Restore returns the documents of a run in their order, given the documents that are installed in the
// cluster now. It fails if these have changed.
func (r *Run) Restore(installed []engine.Document) ([]engine.Document, error) {
	here := map[engine.ObjectKey]engine.Document{}
	for _, d := range installed {
		here[d.Key.Named()] = d
	}
	out := make([]engine.Document, 0, len(r.Documents))
	differ := map[string][]string{}
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
			differ["gone"] = append(differ["gone"], key.String())
			continue
		}
		digest, err := digestOf(now.Object().Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if digest != d.Digest {
			differ["changed"] = append(differ["changed"], key.String())
		}
		out = append(out, now)
	}
	for _, d := range installed {
		if key := d.Key.Named(); !known[key] {
			differ["new"] = append(differ["new"], key.String())
		}
	}
	var parts []string
	for _, how := range []string{"changed", "gone", "new"} {
		if keys := differ[how]; len(keys) > 0 {
			parts = append(parts, how+": "+strings.Join(keys, ", "))
		}
	}
	if len(parts) > 0 {
		return nil, fmt.Errorf("the policies in the cluster have changed since (%s); make it again", strings.Join(parts, "; "))
	}
	return out, nil
}

// DefaultMaxAge limits the age of a plan when it is applied.
const DefaultMaxAge = 24 * time.Hour

// clockSkew is the tolerance for the clock of another machine.
const clockSkew = 5 * time.Minute

// String names a cluster for people, on one line.
func (c Cluster) String() string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"context ", c.Context}, {"", c.Server}, {"kube-system ", string(c.UID)},
	} {
		if p.value != "" {
			parts = append(parts, p.name+p.value)
		}
	}
	return redact.EscapeLine(strings.Join(parts, ", "))
}

// same compares the fields that both have.
func (c Cluster) same(other Cluster) bool {
	if c.UID != "" && other.UID != "" {
		return c.UID == other.UID
	}
	return c.Server == other.Server
}

// CheckCluster returns an error if a run was made on another cluster.
func (r *Run) CheckCluster(here Cluster) error {
	if !r.Cluster.same(here) {
		return fmt.Errorf("it was made on another cluster (%s) than this one (%s)", r.Cluster, here)
	}
	return nil
}

// Check returns an error if a recorded run may not be continued: on another cluster, by another version of
// the program, which may evaluate differently, or after maxAge; 0 stands for any age.
func (r *Run) Check(here Cluster, version string, now time.Time, maxAge time.Duration) error {
	if err := r.CheckCluster(here); err != nil {
		return err
	}
	age := now.Sub(r.Created)
	switch {
	case !sameVersion(r.Version, version):
		return fmt.Errorf("it was made by version %s of this program, and this is %s; make it again", r.Version, version)
	case maxAge > 0 && age > maxAge:
		return fmt.Errorf("it is %s old, which is more than %s (--plan-max-age); make it again", age.Round(time.Second), maxAge)
	case maxAge > 0 && age < -clockSkew:
		return fmt.Errorf("it was made %s in the future; set the clock of this machine", -age.Round(time.Second))
	}
	return nil
}

// sameVersion reports whether two versions differ at most in their patch level.
func sameVersion(a, b string) bool {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	if errX != nil || errY != nil || len(x.Pre) > 0 || len(y.Pre) > 0 {
		return a == b
	}
	return x.Major == y.Major && x.Minor == y.Minor
}
