package engine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Dialect is one policy language.
type Dialect interface {
	// Name is the name of the language in reports: "kyverno", "gatekeeper", ...
	Name() string
	// Accepts returns what an object of this kind is to the language.
	Accepts(schema.GroupKind) Role
	// Compile turns the documents, policies and inputs together, into one
	// program. It returns the program of all that compiled beside an error that
	// joins a *CompileError for each thing that did not; the caller decides
	// whether to go on.
	Compile(Compilation) (Program, error)
}

// Supplier is a Dialect some of whose inputs describe objects that exist, such as
// the Namespaces of which Kyverno's Values give the labels.
type Supplier interface {
	// Supplied are the objects that an input describes. A real object of the same
	// name comes first.
	Supplied(Document) []*unstructured.Unstructured
}

// Role is what a document is to a dialect.
type Role int

// A document is nothing to a dialect, a policy to compile, or an input that its
// policies read (a binding, an exception, an engine's configuration).
const (
	Foreign Role = iota
	Policy
	Input
)

// RoleOf returns what an object of a kind is to any of some dialects: a policy to one of them is a policy.
func RoleOf(gk schema.GroupKind, dialects []Dialect) Role {
	role := Foreign
	for _, d := range dialects {
		switch d.Accepts(gk) {
		case Policy:
			return Policy
		case Input:
			role = Input
		case Foreign:
		}
	}
	return role
}

// Compilation is what a dialect compiles.
type Compilation struct {
	Documents []Document // in the order in which they were read
	Rules     RuleFilter
	// Annotate has a dialect add to the targets of mutate-existing rules the
	// annotations by which its own engine records a change.
	Annotate bool
	// EngineView has a dialect report, as Warnings, what its own engine would write otherwise than it
	// does, where it knows.
	EngineView bool
	// AssumeBinding has installed policies that nothing binds evaluated as if they were bound to all
	// that they match, as those of files are.
	AssumeBinding bool
	// Warn receives lints: what compiles but is probably not what was meant. Never nil.
	Warn func(CompileError)
	// CheckKind returns an *UnknownKindError for a kind that there is not, which is then a
	// lint; nil takes each for one that there is.
	CheckKind func(KindName) error
}

// Program is the compiled set of all policies of one dialect: immutable, safe
// for concurrent use, and the only owner of its own order. The set is the seam,
// not the rule, because Gatekeeper needs a fixed point over the whole set,
// MutatingAdmissionPolicy needs reinvocation, and Kyverno needs rules that see
// each other's results.
type Program interface {
	// Rules lists the rules in evaluation order, for reports.
	Rules() []RuleRef
	// Describe describes each of Rules, in that order. Nobody changes what it returns.
	Describe() []Description
	// Selections returns which objects are worth listing for Evaluate and, in a
	// Propagator, for Effects: a superset of what matches.
	Selections() []Selection
	// Evaluate runs the rules that change the object they match, and returns the
	// object as it would be: the very object it was given where nothing changed.
	// The error ends the run; what goes wrong in a rule is a Step.
	Evaluate(context.Context, Target, *World, Sink) (*unstructured.Unstructured, error)
}

// Propagator is a Program whose rules, on matching an object, change others.
type Propagator interface {
	Program
	// Propagates reports whether there is any such rule, so that a run without one
	// can do without the first pass.
	Propagates() bool
	// Effects turns a trigger into what is to be done to other objects. Effects
	// are kept for the whole run: they should hold what they need, no more.
	Effects(ctx context.Context, trigger Target, w *World, s Sink) ([]Effect, error)
}

// Expander is a Program that generates objects of others, which only it looks at: they are never created.
type Expander interface {
	Program
	// Expands selects the objects of which some are generated.
	Expands() []Selection
	// Expand returns what is generated of an object, by template.
	Expand(of *unstructured.Unstructured) []Generated
}

// Generated is what a template makes of an object; Err says why there is none.
type Generated struct {
	By     RuleRef                    // the template
	Object *unstructured.Unstructured // not nil: of an error it has the kind
	Err    error
}

// Effect is what one rule does to its subjects because of one trigger.
type Effect struct {
	// Rule and Trigger are what caused the effect.
	Rule    RuleRef
	Trigger ObjectKey
	// Subjects names the objects that it changes.
	Subjects Selection
	// Confidential reports whether a Secret may have decided that there is the effect, or named its subjects.
	Confidential bool
	// Apply runs the rule on a subject, and returns what it did. It hands nothing over to the Sink.
	Apply func(ctx context.Context, subject Target, w *World, s Sink) Step
}

// Descriptions describe the rules of a Program without any object, which is what it is to those who list
// objects, review policies, or look for the permissions that a run needs. A Program has one, and adds its
// rules to it when it is compiled.
type Descriptions struct {
	all        []Description
	rules      []RuleRef
	selections SelectionSet
}

// Add adds the next rule in evaluation order. One that only requests to subresources trigger is matched by
// the objects that these requests have.
func (d *Descriptions) Add(one Description) {
	if one.Existing == ByTrigger && len(one.Matches) == 0 {
		one.Matches, one.Requests = TellObjects(one.Requests)
	}
	d.all, d.rules = append(d.all, one), append(d.rules, one.Rule)
	d.selections.Add(one.Matches...)
}

// Describe implements Program.
func (d *Descriptions) Describe() []Description { return d.all }

// Rules implements Program.
func (d *Descriptions) Rules() []RuleRef { return d.rules }

// Selections implements Program.
func (d *Descriptions) Selections() []Selection { return d.selections.All }

// Propagates reports whether a rule changes other objects than those it matches.
func (d *Descriptions) Propagates() bool {
	return slices.ContainsFunc(d.all, func(one Description) bool { return one.Existing == ByTrigger })
}

// Description is what is known of a rule before it is evaluated.
type Description struct {
	Rule RuleRef
	// From is the rule of the policy that Kyverno's autogen derives this one from, for the
	// controllers of Pods; zero for one that the policy has.
	From RuleRef
	// Matches names the objects that the rule is evaluated on, or that trigger it:
	// a superset, like Program.Selections. With a Subresource, only updates of that trigger the rule.
	Matches []Selection
	// Requests names the requests to subresources that the rule is evaluated on beside: no live object stands
	// for one of them.
	Requests []Selection
	// Where narrows Matches further than selections can, in the words of the rule's
	// language: "namespaces: shop, bank", "unless annotations: frozen=true". All of it
	// is true of an object that is changed.
	Where []string
	// Targets names the objects that the rule changes in place of those that set
	// it off; empty where it changes what it matches. A part of a selection that
	// depends on the trigger is empty.
	Targets []Selection
	// Existing is how the rule's own engine treats objects that exist already.
	Existing Existing
	// Operations are those that the rule is limited to; empty for any.
	Operations []Operation
	// AsksOperation reports whether the operation may decide what the rule does.
	AsksOperation bool
	// Changes are the fields that the rule may change, in the words of its
	// language, as far as they are known; empty if they are not.
	Changes []string
	// Asks is what the rule reads in addition to the object.
	Asks []Ask
	// Params names those of the objects in Asks that are a part of the policy: to change one is to change the
	// policy.
	Params []Selection
	// Gap says why the rule cannot be evaluated at all; nil where it can.
	Gap error
}

// Existing is what happens to objects that existed before the policy.
type Existing string

// The ways in which rules treat existing objects.
const (
	// OnAdmission rules change an object when a request for it passes by.
	OnAdmission Existing = "admission"
	// ByTrigger rules change other objects when one that they match is seen.
	ByTrigger Existing = "trigger"
	// InBackground rules are run on existing objects by their own engine too.
	InBackground Existing = "background"
)

// Ask is one thing that a rule reads in addition to the object.
type Ask struct {
	Of AskOf
	// What names it for people: a URL, a path, an image, as the policy has it.
	What string
	// Objects are those that it reads, for AskObjects. A part that the policy
	// computes is Computed; no Kind at all means that nothing is known of them.
	Objects Selection
	// Method and Path are a request to the API server, for AskAPI and AskAccess.
	// What the policy computes of a path is "*".
	Method, Path string
}

// Computed is the part of a Selection that is one plain text when a rule runs, and
// not known before: as a pattern, any string.
const Computed = "?*"

// AskOf is whom a rule asks.
type AskOf string

// Whom rules ask.
const (
	AskObjects  AskOf = "objects"  // the cluster, for objects
	AskAPI      AskOf = "api"      // the API server, by a path
	AskAccess   AskOf = "access"   // the API server, for what a user may do
	AskService  AskOf = "service"  // a web service
	AskRegistry AskOf = "registry" // an image registry
	AskProvider AskOf = "provider" // a provider of external data in the cluster
)
