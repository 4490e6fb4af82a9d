package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// What a plan file says it is. Journals are of the same version, since they hold the
// entries of a plan; a change of either makes a new one.
const (
	group      = "mutate.kubectl.dev"
	APIVersion = group + "/v1alpha2"
	Kind       = "Plan"
)

// Plan is what a preview found.
type Plan struct {
	Run
	// Summary counts what was evaluated, the objects that would not change too.
	Summary evaluation.Summary `json:"summary"`
	// Incomplete reports that the preview left something open: a rule failed, or a
	// part of the cluster could not be read.
	Incomplete bool `json:"incomplete,omitempty"`
	// Entries are the objects that would change, and those of which there is
	// something else to report, in the order of the preview.
	Entries []*Entry `json:"entries,omitempty"`
}

// HoldsSecrets reports whether an entry has values that were made of a Secret, or withholds them.
func (p *Plan) HoldsSecrets() bool { return slices.ContainsFunc(p.Entries, (*Entry).HoldsSecrets) }

// Run is how changes came about, so that they can be evaluated again with the same
// result.
type Run struct {
	Cluster Cluster `json:"cluster"`
	// Version is the program's.
	Version string `json:"version"`
	// Created is the clock of the evaluation, and Seed its source of random values.
	Created time.Time `json:"created"`
	Seed    uint64    `json:"seed,string"`
	Choice  Choice    `json:"choice"`
	// Documents are the policies and their inputs, in the order in which they were
	// compiled. Digest is over all of them.
	Documents []Document `json:"documents"`
	Digest    string     `json:"digest"`
}

// Cluster identifies a cluster. What is not known is empty.
type Cluster struct {
	// UID is that of the Namespace kube-system, which nothing but a new cluster changes.
	UID     types.UID `json:"uid,omitempty"`
	Server  string    `json:"server,omitempty"`
	Context string    `json:"context,omitempty"` // of the kubeconfig
	User    string    `json:"user,omitempty"`
}

// Choice is how the user chose policies and objects.
type Choice struct {
	Types []string `json:"types,omitempty"` // TYPE and TYPE/NAME
	// Namespace is what was looked at: one namespace, or several with commas between them; empty stands for all.
	Namespace     string `json:"namespace,omitempty"`
	ClusterScoped bool   `json:"clusterScoped,omitempty"`
	Selector      string `json:"selector,omitempty"`
	FieldSelector string `json:"fieldSelector,omitempty"`
	// Percent and PercentSeed are those of engine.Scope.
	Percent     int    `json:"percent,omitempty"`
	PercentSeed string `json:"percentSeed,omitempty"`
	// Shard is that of engine.Scope.
	Shard engine.Shard `json:"shard,omitzero"`

	Operation engine.Operation `json:"operation"`
	User      string           `json:"requestUser,omitempty"`
	Groups    []string         `json:"requestGroups,omitempty"`

	Only     []string `json:"only,omitempty"`
	Skip     []string `json:"skip,omitempty"`
	Annotate bool     `json:"annotate,omitempty"`
	// AssumeBinding is that of engine.Compilation.
	AssumeBinding bool `json:"assumeBinding,omitempty"`
	// FromCluster reports that installed policies were evaluated too.
	FromCluster bool `json:"fromCluster,omitempty"`
	// AllowHTTP and AllowRegistry are what the policies were allowed. A plan
	// grants neither: the user has to when it is applied.
	AllowHTTP     bool `json:"allowHTTP,omitempty"`
	AllowRegistry bool `json:"allowRegistry,omitempty"`
}
