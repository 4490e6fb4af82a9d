package engine

// Describer is a Program that says what its rules are about before there is any
// object: for people who review policies, and for the permissions that a run needs.
type Describer interface {
	// Describe has a Description for each of Rules, in that order.
	Describe() []Description
}

// Description is what a rule says about itself.
type Description struct {
	Rule RuleRef
	// Matches names the objects that the rule is evaluated on, or that set it off:
	// a superset, like Program.Selections.
	Matches []Selection
	// Where narrows Matches further than selections can, in the words of the rule's
	// language: "namespaces: shop, bank", "unless annotations: frozen=true". All of it
	// holds of what is changed.
	Where []string
	// Targets names the objects that the rule changes in place of those that set
	// it off; empty where it changes what it matches. A part of a selection that
	// only a trigger can tell is empty.
	Targets []Selection
	// Existing is how the rule's own engine treats objects that exist already.
	Existing Existing
	// Operations are those that the rule is limited to; empty for any.
	Operations []Operation
	// Changes are the fields that the rule may change, in the words of its
	// language, as far as they can be told; empty where they cannot.
	Changes []string
	// Asks is what the rule wants to know beside the object.
	Asks []Ask
	// Gap says why the rule cannot be evaluated at all; nil where it can.
	Gap error
}

// Existing says what becomes of objects that were there before the policy.
type Existing string

// The ways of a rule with objects that exist.
const (
	// OnAdmission rules change an object when a request for it passes by.
	OnAdmission Existing = "admission"
	// ByTrigger rules change other objects when one that they match is seen.
	ByTrigger Existing = "trigger"
	// InBackground rules are run on existing objects by their own engine too.
	InBackground Existing = "background"
)

// Ask is one thing that a rule wants to know beside the object.
type Ask struct {
	Of AskOf
	// What names it for people: a URL, a path, an image, as the policy has it.
	What string
	// Objects are those that it reads, for AskObjects. A part that the policy
	// computes is Computed; no Kind at all says that nothing is known of them.
	Objects Selection
	// Method and Path are a request to the API server, for AskAPI and AskAccess.
	// What the policy computes of a path is "*".
	Method, Path string
}

// Computed is the part of a Selection that is one plain text when a rule runs, and
// cannot be told before: as a pattern, any text.
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
