// This file keeps the reports of a preview in the cluster, one for each object, and reads them back.
//
// A report is named after the UID of its object and owned by it, so that it is deleted with it. The labels
// of a report name its set: runs of other policies keep other sets. A run deletes from its set what it no
// longer finds.

package report

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// StoreServer has the reports. Its client can write nothing else.
type StoreServer interface {
	// Apply creates an object, or takes the fields of an existing one.
	Apply(context.Context, engine.ObjectKey, []byte) error
	// Delete deletes the object with this UID.
	Delete(context.Context, engine.ObjectKey, types.UID) error
	List(context.Context, engine.Selection) iter.Seq2[*unstructured.Unstructured, error]
}

// Labels of a report.
const (
	managedBy = "app.kubernetes.io/managed-by"
	instance  = "app.kubernetes.io/instance"
	program   = "kubectl-mutate"
)

// StoreOptions say which reports a run writes.
type StoreOptions struct {
	// Name of the set of reports.
	Name string
	// Kind of the reports on namespaced objects; ClusterKind of the others, and of problems.
	Kind, ClusterKind schema.GroupVersionKind
	// Scope of the run: it deletes no report on an object beyond it.
	Scope engine.Scope
	// Workers is the number of reports that are written at the same time.
	Workers int
}

// Store writes reports as they come. A nil Store writes nothing.
type Store struct {
	StoreOptions
	server StoreServer
	ctx    context.Context // of the run, which Write does not get
	group  errgroup.Group
	seen   map[engine.ObjectKey]bool
	// stored has the reports of the set that the run has not written yet; nil before they are listed.
	stored   map[engine.ObjectKey]stored
	unlisted error

	mu     sync.Mutex
	failed []error
	count  int

	complete bool
}

// stored is a report in the cluster.
type stored struct {
	uid    types.UID
	digest [sha256.Size]byte
	covers bool // the run would find its object
}

// NewStore begins the reports of a run.
func NewStore(ctx context.Context, server StoreServer, o StoreOptions) *Store {
	s := &Store{StoreOptions: o, server: server, ctx: ctx, seen: map[engine.ObjectKey]bool{}}
	s.group.SetLimit(max(o.Workers, 1))
	return s
}

// Write takes the manifest of one report, as a PolicyReport writes it.
func (s *Store) Write(manifest []byte) (int, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, &u.Object); err != nil {
		return 0, fmt.Errorf("report: %w", err)
	}
	if u.Object == nil {
		return len(manifest), nil // a comment
	}
	s.name(u)
	key := engine.KeyOf(u).Named()
	s.seen[key] = true
	same, err := s.isStored(key, u)
	if err != nil || same {
		return len(manifest), err
	}
	s.group.Go(func() error {
		s.apply(u)
		return nil
	})
	return len(manifest), s.ctx.Err()
}

// isStored reports whether the cluster already has an equal report, which is then not written, so that its
// time is that of its last change.
func (s *Store) isStored(key engine.ObjectKey, u *unstructured.Unstructured) (bool, error) {
	if !s.finds() {
		return false, nil // not worth listing all
	}
	s.list()
	known, there := s.stored[key]
	delete(s.stored, key)
	digest, err := digestOf(u)
	if err != nil || !there || digest != known.digest {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return true, nil
}

// finds reports whether a run of this scope can find all objects of the reports.
func (s *Store) finds() bool {
	return s.Scope.Labels == nil && s.Scope.Fields == nil && s.Scope.Percent == 0
}

// list lists the reports of the set, once.
func (s *Store) list() {
	if s.stored != nil {
		return
	}
	s.stored = map[engine.ObjectKey]stored{}
	for u, err := range s.reports(s.ctx) {
		var digest [sha256.Size]byte
		if err == nil {
			digest, err = digestOf(u)
		}
		if err != nil {
			s.unlisted = err
			return
		}
		s.stored[engine.KeyOf(u).Named()] = stored{uid: u.GetUID(), digest: digest, covers: s.covers(u)}
	}
}

// digestOf returns a digest of the parts of a report that a run writes.
func digestOf(u *unstructured.Unstructured) ([sha256.Size]byte, error) {
	content := maps.Clone(u.Object)
	labels := u.GetLabels()
	content["metadata"] = []any{labels[managedBy], labels[instance], u.GetOwnerReferences()}
	text, err := json.Marshal(content)
	return sha256.Sum256(text), err
}

// name makes a report one of the set.
func (s *Store) name(u *unstructured.Unstructured) {
	u.SetLabels(map[string]string{managedBy: program, instance: s.Name})
	about, _, _ := unstructured.NestedStringMap(u.Object, "scope")
	if about == nil {
		if u.SetName(s.problems()); len(s.Scope.Listed()) > 0 {
			u.SetKind(s.Kind.Kind)
			u.SetNamespace(s.Scope.Listed()[0])
		}
		return
	}
	own := strings.TrimPrefix(u.GetName(), program)
	uid := about["uid"]
	if uid == "" {
		u.SetName(s.Name + own)
		return
	}
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: about["apiVersion"], Kind: about["kind"],
		Name: about["name"], UID: types.UID(uid),
	}})
	if u.SetName(s.Name + "-" + uid); s.seen[engine.KeyOf(u).Named()] {
		u.SetName(s.Name + "-" + uid + own) // of a subresource
	}
}

// problems returns the name of the report of problems.
func (s *Store) problems() string {
	name := s.Name + "-problems"
	if !s.Scope.Shard.Whole() {
		name += "-" + strings.ReplaceAll(s.Scope.Shard.String(), "/", "-of-")
	}
	return name
}

func (s *Store) apply(u *unstructured.Unstructured) {
	body, err := json.Marshal(u.Object)
	if err == nil {
		err = s.server.Apply(s.ctx, engine.KeyOf(u), body)
	}
	if apierrors.IsNotFound(err) && s.ctx.Err() == nil {
		err = nil // its namespace was deleted, with the object
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; err != nil {
		s.failed = append(s.failed, err)
	}
}

// Finds says whether the run has found all of its objects: only then are the others gone.
func (s *Store) Finds(all bool) {
	if s != nil {
		s.complete = all
	}
}

// Commit waits for the reports, and deletes those of the set that the run no longer finds. Its error has the
// first failed request.
func (s *Store) Commit() error {
	if err := s.Discard(); err != nil {
		return err
	}
	if len(s.failed) > 0 {
		return fmt.Errorf("%d of %d reports were not written to the cluster, so that none was deleted: %w", len(s.failed), s.count, s.failed[0])
	}
	if !s.complete || !s.finds() {
		return nil
	}
	if err := s.prune(); err != nil {
		return fmt.Errorf("deleting reports that are out of date: %w", err)
	}
	return nil
}

// Discard waits for the writes of a run that broke off. What was written stays, as it is true.
func (s *Store) Discard() error { return s.group.Wait() }

// prune deletes the reports that the run would have written if they were still true.
func (s *Store) prune() error {
	if s.list(); s.unlisted != nil {
		return s.unlisted
	}
	for key, r := range s.stored {
		if !r.covers {
			continue
		}
		key.Version = s.Kind.Version
		if err := s.server.Delete(s.ctx, key, r.uid); err != nil && !apierrors.IsNotFound(err) &&
			!apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// covers reports whether the run would have found the object of a report.
func (s *Store) covers(u *unstructured.Unstructured) bool {
	k := subjectOf(u)
	if k == nil {
		return u.GetName() == s.problems()
	}
	return s.Scope.Includes(*k, nil) && s.Scope.InShard(*k)
}

// subjectOf returns the object of a report, or nil.
func subjectOf(u *unstructured.Unstructured) *engine.ObjectKey {
	about, _, _ := unstructured.NestedStringMap(u.Object, "scope")
	if about == nil {
		return nil
	}
	return &engine.ObjectKey{GroupKind: schema.FromAPIVersionAndKind(about["apiVersion"],
		about["kind"]).GroupKind(), Namespace: about["namespace"], Name: about["name"]}
}

// reports streams the reports of the set, or of all sets without a name, in the namespaces of the run, up to
// the first error.
func (s *Store) reports(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	labels := map[string]string{managedBy: program}
	if s.Name != "" {
		labels[instance] = s.Name
	}
	namespaces, kinds := s.Scope.Listed(), []schema.GroupVersionKind{s.Kind}
	if len(namespaces) == 0 {
		namespaces, kinds = []string{""}, append(kinds, s.ClusterKind)
	}
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for _, kind := range kinds {
			for _, namespace := range namespaces {
				for u, err := range s.server.List(ctx, engine.Selection{
					Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: namespace,
					Labels: &metav1.LabelSelector{MatchLabels: labels},
				}) {
					if !yield(u, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

// StoreCount is the number of each result of a rule.
type StoreCount struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule,omitempty"`
	Fail   int    `json:"fail"`
	Error  int    `json:"error"`
	Skip   int    `json:"skip"`
	Pass   int    `json:"pass"`
}

// StoreSummary has the results of all reports of a set by policy and rule, and the number of their objects.
type StoreSummary struct {
	Objects int          `json:"objects"`
	Rules   []StoreCount `json:"rules"`
}

// Print prints the results as JSON or YAML, with the schema of docs/summary.schema.json.
func (s StoreSummary) Print(out io.Writer, asYAML bool) error {
	return structured.Write(out, asYAML, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		StoreSummary
	}{"mutate.kubectl.dev/v1alpha1", "ReportSummary", s})
}

// ReadSummary reads the reports of a set, or of all sets without a name.
func ReadSummary(ctx context.Context, server StoreServer, o StoreOptions) (StoreSummary, error) {
	var out StoreSummary
	counts := map[[2]string]*StoreCount{}
	s := Store{StoreOptions: o, server: server}
	for u, err := range s.reports(ctx) {
		if err != nil {
			return out, err
		}
		if about := subjectOf(u); about != nil {
			if !s.Scope.Includes(*about, nil) {
				continue
			}
			out.Objects++
		}
		results, _, _ := unstructured.NestedSlice(u.Object, "results")
		for _, r := range results {
			result, _ := r.(map[string]any)
			count(counts, result)
		}
	}
	for _, c := range counts {
		out.Rules = append(out.Rules, *c)
	}
	slices.SortFunc(out.Rules, func(a, b StoreCount) int {
		return strings.Compare(a.Policy+"\x00"+a.Rule, b.Policy+"\x00"+b.Rule)
	})
	return out, nil
}

func count(counts map[[2]string]*StoreCount, result map[string]any) {
	text := func(name string) string { s, _ := result[name].(string); return s }
	at := [2]string{text("policy"), text("rule")}
	c := counts[at]
	if c == nil {
		c = &StoreCount{Policy: at[0], Rule: at[1]}
		counts[at] = c
	}
	if n := map[string]*int{
		"fail": &c.Fail, "error": &c.Error, "skip": &c.Skip,
		"pass": &c.Pass,
	}[text("result")]; n != nil {
		*n++
	}
}
