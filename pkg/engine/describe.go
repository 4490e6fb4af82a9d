package engine

// Describer is a Program that describes its rules without any object: for people who
// review policies, and to know the permissions that a run needs.
type Describer interface {
	// Describe returns a Description for each of Rules, in that order.
	Describe() []Description
}

// Description is what is known of a rule before it is evaluated.
type Description struct {
	Rule RuleRef
	// From is the rule of the policy that Kyverno's autogen derives this one from, for the
	// controllers of Pods; zero for one that the policy has.
	From RuleRef
	// Matches names the objects that the rule is evaluated on, or that trigger it:
	// a superset, like Program.Selections.
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
	// Changes are the fields that the rule may change, in the words of its
	// language, as far as they are known; empty if they are not.
	Changes []string
	// Asks is what the rule reads in addition to the object.
	Asks []Ask
	// Params names those of the objects in Asks that are a part of the policy: to change one is to change the policy.
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
// not known before: as a pattern, any text.
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
