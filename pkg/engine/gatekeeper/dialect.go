package gatekeeper

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Name is the name of the dialect in reports.
const Name = "gatekeeper"

const (
	mutationsGroup = "mutations.gatekeeper.sh"
	configGroup    = "config.gatekeeper.sh"
)

// The kinds of mutators.
const (
	kindAssign         = "Assign"
	kindAssignImage    = "AssignImage"
	kindAssignMetadata = "AssignMetadata"
	kindModifySet      = "ModifySet"
)

// Dialect reads Gatekeeper's mutators.
type Dialect struct{ expands bool }

// New returns the dialect.
func New() *Dialect { return &Dialect{} }

// NewExpander returns the dialect with ExpansionTemplates, whose programs are Expanders.
func NewExpander() *Dialect { return &Dialect{expands: true} }

// Name is "gatekeeper".
func (*Dialect) Name() string { return Name }

// Accepts returns Policy for the four kinds of mutators, and Input for Gatekeeper's Config and, if wanted,
// ExpansionTemplates.
func (d *Dialect) Accepts(gk schema.GroupKind) engine.Role {
	switch gk {
	case schema.GroupKind{Group: configGroup, Kind: "Config"}:
		return engine.Input
	case templateKind:
		if d.expands {
			return engine.Input
		}
	case schema.GroupKind{Group: mutationsGroup, Kind: kindAssign},
		schema.GroupKind{Group: mutationsGroup, Kind: kindAssignImage},
		schema.GroupKind{Group: mutationsGroup, Kind: kindAssignMetadata},
		schema.GroupKind{Group: mutationsGroup, Kind: kindModifySet}:
		return engine.Policy
	}
	return engine.Foreign
}

// Compile reads mutators and Config. It omits and reports mutators that do not compile or that contradict
// another one, since Gatekeeper enforces none of these. Only mutators selected by the user can contradict
// each other, so excluding one resolves a conflict.
func (d *Dialect) Compile(c engine.Compilation) (engine.Program, error) {
	byID := map[string]*mutator{}
	var excluded []string
	templates, errs := decodeTemplates(&c)
	for _, document := range c.Documents {
		gk := document.Key.GroupKind
		r := policydecode.NewReport(document, gk.Kind+" "+document.Key.Name, &c)
		if d.Accepts(gk) == engine.Policy {
			var m *mutator
			if err := engine.Guard(func() error { m = decodeMutator(r, document); return nil }); err != nil {
				policydecode.Node{Report: r}.Fail("%w", err)
				errs = append(errs, r.Errs...)
				continue
			}
			m.ref.Severity = engine.SeverityOf(document.Object())
			if byID[m.id] != nil {
				m.location.Lint("it is defined more than once; this one counts")
			}
			byID[m.id] = m
		} else if gk.Group == configGroup {
			excluded = append(excluded, decodeConfig(r, document.Object())...)
		}
		errs = append(errs, r.Errs...)
	}
	mutators := usable(byID)
	nameMutators(mutators)
	keeps := c.Rules.Keeps()
	mutators = slices.DeleteFunc(mutators, func(m *mutator) bool { return !keeps(m.ref) })
	installed := len(mutators) // conflicting ones too: Gatekeeper grants a round for each
	mutators, conflicts := withoutConflicts(mutators)
	lintSet(mutators)
	if len(templates) == 0 {
		lintGenerated(mutators)
	}
	for _, m := range mutators { // let the documents be freed
		m.location, m.source, m.written = policydecode.Node{}, policydecode.Node{}, written{}
	}
	p := &program{mutators: mutators, rounds: installed + 1, excluded: excluded, templates: templates}
	for _, m := range mutators {
		p.Add(m.describe())
	}
	return p, errors.Join(append(errs, conflicts...)...)
}

// usable returns the mutators that compiled, in Gatekeeper's order: by kind, then by name.
func usable(byID map[string]*mutator) []*mutator {
	var out []*mutator
	for _, m := range byID {
		if m.action != nil {
			out = append(out, m)
		}
	}
	slices.SortFunc(out,
		func(a, b *mutator) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return out
}

// nameMutators sets the mutators' names in reports, with the kind if several kinds share a name.
func nameMutators(mutators []*mutator) {
	count := map[string]int{}
	for _, m := range mutators {
		count[m.name]++
	}
	for _, m := range mutators {
		m.ref = engine.RuleRef{
			Dialect: Name, Policy: m.name, Origin: m.location.Report.Origin, Severity: m.ref.Severity,
		}
		if count[m.name] > 1 {
			m.ref.Policy = m.kind + "/" + m.name
		}
	}
}

// withoutConflicts removes and reports the mutators that contradict others.
func withoutConflicts(mutators []*mutator) ([]*mutator, []error) {
	var claims []schemaClaim
	for _, m := range mutators {
		if m.kind == kindAssignMetadata {
			continue
		}
		claims = append(claims, m.claim())
	}
	found := findConflicts(claims)
	var errs []error
	kept := make([]*mutator, 0, len(mutators))
	for _, m := range mutators {
		if found[m.id] == nil {
			kept = append(kept, m)
			continue
		}
		e := m.location.Error(found[m.id])
		errs = append(errs, &e)
	}
	return kept, errs
}

// decodeConfig returns the namespaces that Gatekeeper's Config excludes from mutation.
func decodeConfig(r *policydecode.Report, u *unstructured.Unstructured) []string {
	root := policydecode.Node{Report: r, Value: u.Object}.Fields()
	if u.GetName() != "config" {
		root.At("metadata").Lint(`Gatekeeper reads only the Config with the name "config", so this one has no effect`)
		return nil
	}
	var out []string
	spec := root.At("spec").Fields()
	for _, entry := range spec.At("match").List() {
		fields := entry.Fields()
		processes := fields.At("processes").Texts()
		excluded := fields.At("excludedNamespaces").Texts()
		if slices.Contains(processes, "*") || slices.Contains(processes, "mutation-webhook") {
			out = append(out, excluded...)
		}
		fields.Done()
	}
	spec.Accept("sync", "validation", "readiness")
	spec.Done()
	root.DoneObject()
	return out
}

func (m *mutator) describe() engine.Description {
	d := engine.Description{
		Rule: m.ref, Matches: m.selections(), Existing: engine.OnAdmission,
		Where: append(m.criteria.where(), m.tests.texts(m.path)...), Operations: m.operations(),
		AsksOperation: m.asksOperation(), Changes: []string{m.path.String()},
	}
	if a, ok := m.action.(*assign); ok && a.External != nil {
		d.Asks = []engine.Ask{{Of: engine.AskProvider, What: a.External.Provider}}
	}
	return d
}

// asksOperation reports whether an entry of applyTo is limited to one operation.
func (m *mutator) asksOperation() bool {
	return slices.ContainsFunc(m.criteria.ApplyTo, func(a applyTo) bool {
		return a.does(engine.OperationCreate) != a.does(engine.OperationUpdate)
	})
}

// operations returns the operations to which every entry of applyTo is limited.
func (m *mutator) operations() []engine.Operation {
	var out []engine.Operation
	for _, operation := range []engine.Operation{engine.OperationCreate, engine.OperationUpdate} {
		if slices.ContainsFunc(m.criteria.ApplyTo, func(a applyTo) bool { return a.does(operation) }) {
			out = append(out, operation)
		}
	}
	if len(out) == 2 {
		return nil
	}
	return out
}
