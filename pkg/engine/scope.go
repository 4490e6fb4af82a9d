package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	operators "k8s.io/apimachinery/pkg/selection"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Scope is the user's choice of the objects that may change. A Source reads what both the
// policies and the scope select. A nil Scope chooses everything.
type Scope struct {
	// Namespaces are the namespaces to look in, sorted: names or wildcard patterns; none stands for all.
	Namespaces []string
	// Exclude removes objects from the choice. Its Resource is compared with the usual names of a kind's
	// resource: plural, singular, and plural with its group.
	Exclude []Selection
	// ClusterScoped includes objects that have no namespace.
	ClusterScoped bool
	// Only holds the types and names that the user typed: group, kind and perhaps name; empty stands for every
	// kind that the policies match. A typed kind includes objects that a mere wildcard leaves out: Events,
	// Leases, EndpointSlices and objects owned by a controller.
	Only []ObjectKey
	// Labels and Fields select on the server; nil selects everything.
	Labels labels.Selector
	Fields fields.Selector
	// Percent is the percentage of objects to choose, by their identity and the Seed: 20 includes the objects of
	// 10. 0 chooses all. A Source streams the others too.
	Percent int
	Seed    string
	// Shard is the run's part of the chosen objects. Other runs change the others at the same time: as triggers,
	// they are seen as those runs leave them.
	Shard Shard
	// Request is the admission request to simulate for each object.
	Request Request
}

// Whole reports whether the scope chooses everything.
func (s *Scope) Whole() bool {
	return s == nil || len(s.Namespaces) == 0 && len(s.Exclude) == 0 && s.ClusterScoped && len(s.Only) == 0 &&
		s.Labels == nil && s.Fields == nil && s.Percent == 0 && s.Shard.Whole()
}

// InPercent reports whether an object is among the Percent of all that the scope chooses.
func (s *Scope) InPercent(k ObjectKey) bool {
	if s == nil || s.Percent == 0 {
		return true
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{s.Seed, k.Group, k.Kind, k.Namespace, k.Name}, "\x00")))
	return binary.BigEndian.Uint64(sum[:])%100 < uint64(s.Percent) // a percentage
}

// InShard reports whether an object is in the Shard.
func (s *Scope) InShard(k ObjectKey) bool { return s == nil || s.Shard.Has(k.Namespace, k.Name) }

// ShardMeets reports whether a selection may select an object of the Shard.
func (s *Scope) ShardMeets(sel Selection) bool {
	switch {
	case s == nil:
		return true
	case sel.Namespace != "":
		return selector.HasWildcard(sel.Namespace) || s.Shard.Has(sel.Namespace, "")
	}
	return !sel.Exact() || s.Shard.Has("", sel.Name)
}

// Includes reports whether the scope, apart from Percent and Shard, chooses an object, as far as its key and
// labels show: only a Source or a Reader knows Fields other than name and namespace.
func (s *Scope) Includes(k ObjectKey, has map[string]string) bool {
	if s.Whole() {
		return true
	}
	typed := func(key ObjectKey) bool {
		return key.GroupKind == k.GroupKind && (key.Name == "" || namesObject(key, k.Namespace, k.Name))
	}
	switch chosen := slices.ContainsFunc(s.Only, typed); {
	case len(s.Only) > 0 && !chosen, k.Namespace == "" && !s.ClusterScoped && !chosen:
		return false
	}
	return s.reaches(k, has) && s.mayHaveFields(k)
}

func (s *Scope) excludes(k ObjectKey) bool {
	return slices.ContainsFunc(s.Exclude, func(x Selection) bool {
		if !x.MatchesName(k) {
			return false
		}
		plural, singular := meta.UnsafeGuessKindToResource(k.GroupVersionKind())
		return x.MatchesResource(plural.Resource) || x.MatchesResource(singular.Resource) ||
			x.MatchesResource(plural.GroupResource().String())
	})
}

func (s *Scope) mayHaveFields(k ObjectKey) bool {
	if s.Fields == nil {
		return true
	}
	known := fields.Set{"metadata.name": k.Name, "metadata.namespace": k.Namespace}
	return !slices.ContainsFunc(s.Fields.Requirements(), func(r fields.Requirement) bool {
		value, ok := known[r.Field]
		return ok && (value == r.Value) == (r.Operator == operators.NotEquals)
	})
}

// Names reports whether the user typed the name of an object.
func (s *Scope) Names(k ObjectKey) bool {
	return s != nil && slices.ContainsFunc(s.Only, func(typed ObjectKey) bool {
		return typed.GroupKind == k.GroupKind && namesObject(typed, k.Namespace, k.Name)
	})
}

// reaches reports whether an object has a namespace of the scope, if any, has its labels, and is not
// excluded.
func (s *Scope) reaches(k ObjectKey, has map[string]string) bool {
	return s.In(k.Namespace) && (s.Labels == nil || s.Labels.Matches(labels.Set(has))) && !s.excludes(k)
}

// In reports whether objects of a namespace may be chosen; cluster-scoped objects may.
func (s *Scope) In(namespace string) bool {
	return len(s.Namespaces) == 0 || namespace == "" ||
		slices.ContainsFunc(s.Namespaces,
			func(pattern string) bool { return selector.MatchWildcard(pattern, namespace) })
}

// Listed returns the namespaces of the scope, to be read one by one; none where everything must be read.
func (s *Scope) Listed() []string {
	if slices.ContainsFunc(s.Namespaces, selector.HasWildcard) {
		return nil
	}
	return s.Namespaces
}

// within returns patterns for the namespaces of the scope that a pattern covers; an empty one covers all. Of
// two patterns it returns the given one.
func (s *Scope) within(pattern string) []string {
	var out []string
	for _, namespace := range s.Namespaces {
		switch {
		case openOrMatch(pattern, namespace):
			out = append(out, namespace)
		case selector.HasWildcard(namespace) &&
			(selector.HasWildcard(pattern) || selector.MatchWildcard(namespace, pattern)):
			out = append(out, pattern)
		}
	}
	return Distinct(out)
}

// Mapper is the part of a meta.RESTMapper that this package needs.
type Mapper interface {
	RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// Narrow returns the part of a selection in the scope, apart from its Labels, to read no more: one selection
// for each typed type and each namespace, and none without an overlap. A kind unknown to the mapper, such as
// a pattern, may be any.
func (s *Scope) Narrow(sel Selection, m Mapper) []Selection {
	if s.Whole() {
		return []Selection{sel}
	}
	if len(s.Only) == 0 {
		return s.narrow(sel, false, m)
	}
	var out []Selection
	for _, typed := range s.Only {
		mapping := mappingOf(typed.GroupKind, m)
		if !sel.MatchesKind(typed) || mapping != nil && !sel.MatchesResource(mapping.Resource.Resource) ||
			typed.Name != "" && !openOrMatch(sel.Name, typed.Name) {
			continue
		}
		part := sel
		part.Group, part.Kind, part.Resource = typed.Group, typed.Kind, ""
		if typed.Name != "" {
			part.Name = typed.Name
		}
		out = append(out, s.narrow(part, true, m)...)
	}
	return out
}

// narrow is Narrow for one kind, which the user may have typed, or for a pattern of kinds.
func (s *Scope) narrow(sel Selection, typed bool, m Mapper) []Selection {
	if s.Fields != nil {
		sel.Fields = s.Fields.String()
	}
	mapping := mappingOf(schema.GroupKind{Group: sel.Group, Kind: sel.Kind}, m)
	switch {
	case sel.Exact() && s.excludes(ObjectKey{
		GroupKind: schema.GroupKind{Group: sel.Group, Kind: sel.Kind}, Namespace: sel.Namespace, Name: sel.Name,
	}):
		return nil
	case mapping != nil && mapping.Scope.Name() == meta.RESTScopeNameRoot:
		if !s.ClusterScoped && !typed {
			return nil
		}
		return []Selection{sel}
	case len(s.Namespaces) == 0, mapping == nil && s.ClusterScoped:
		return []Selection{sel}
	}
	var out []Selection
	for _, sel.Namespace = range s.within(sel.Namespace) {
		out = append(out, sel)
	}
	return out
}

// mappingOf returns the mapping of a kind; nil if unknown.
func mappingOf(gk schema.GroupKind, m Mapper) *meta.RESTMapping {
	if m == nil {
		return nil
	}
	mapping, err := m.RESTMapping(gk)
	if err != nil {
		return nil
	}
	return mapping
}

// Shard is one of several parts of all objects. Each object is in exactly one: all objects of a namespace are
// in the shard
//
//	FNV-1a(namespace) mod Of
//
// with the 64-bit hash of the namespace's name in UTF-8. A cluster-scoped object is hashed by its own name,
// so that a Namespace is with its objects. The zero value is all objects.
type Shard struct {
	Index int // from 0
	Of    int // the number of shards
}

// MaxShards is the maximum of Of: the most indexes of a Kubernetes Job with a backoff limit per index.
const MaxShards = 100_000

// UnmarshalText reads INDEX/COUNT.
func (s *Shard) UnmarshalText(text []byte) error {
	index, count, ok := strings.Cut(string(text), "/")
	i, badIndex := strconv.ParseUint(index, 10, 31)
	of, badCount := strconv.ParseUint(count, 10, 31)
	if !ok || badIndex != nil || badCount != nil || i >= of || of > MaxShards {
		return fmt.Errorf("%q is no shard: use INDEX/COUNT, such as 0/4, with an INDEX from 0 to COUNT-1 and a COUNT of at most %d", text, MaxShards)
	}
	*s = Shard{Index: int(i), Of: int(of)} // they have 31 bits
	return nil
}

// MarshalText writes INDEX/COUNT, and nothing for the zero value.
func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is INDEX/COUNT, and empty for the zero value.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// Whole reports whether all objects are in the shard.
func (s Shard) Whole() bool { return s.Of <= 1 }

// Has reports whether an object is in the shard. Namespace is empty for cluster-scoped objects.
func (s Shard) Has(namespace, name string) bool {
	if s.Whole() {
		return true
	}
	if namespace != "" {
		name = namespace
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))                     // it never fails
	return h.Sum64()%uint64(s.Of) == uint64(s.Index) // neither is negative
}
