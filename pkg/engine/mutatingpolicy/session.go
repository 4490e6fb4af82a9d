package mutatingpolicy

import (
	"context"
	"fmt"
	"slices"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/kyverno/sdk/extensions/cel/libs/globalcontext"
	"github.com/kyverno/sdk/extensions/cel/libs/resource"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Session answers the functions of one evaluation. It serves one goroutine.
type Session struct {
	SessionSettings
	context context.Context // a session does not outlive its evaluation
	world   *engine.World
	dice    *engine.Random
	absent  string // the first missing object that was read by name

	// Missing is the first requirement of an expression that the run lacks, an *engine.UnsupportedError. It is
	// why an expression failed, even if its error does not say so. A value computed without it is valid.
	Missing error
	// Warnings are about the answers.
	Warnings []engine.Warning
}

// SessionSettings are the inputs of an evaluation.
type SessionSettings struct {
	// Seed is the seed of this evaluation's random values: equal seeds give equal series.
	Seed uint64
	// Entries are the GlobalContextEntries among the documents.
	Entries *Entries
	// Namespace is the namespace of a namespaced policy.
	Namespace string
	// Images and Values are allowed by exceptions.
	Images, Values []string
}

// NewSession starts the session of an evaluation in a world.
func NewSession(ctx context.Context, w *engine.World, s SessionSettings) *Session {
	return &Session{SessionSettings: s, context: ctx, world: w, dice: engine.NewRandom(s.Seed)}
}

// Bindings returns the values of the variables that LibraryOptions declares.
func (s *Session) Bindings() map[string]any {
	return map[string]any{
		resourceName:      resource.Context{ContextInterface: s},
		globalContextName: globalcontext.Context{ContextInterface: s},
		httpName:          newOpaque(httpType, httpClient{session: s}),
		imageName:         newOpaque(imageDataType, s),
		clockName:         s.world.Now,
		diceName:          newOpaque(diceType, s.dice),
		exceptionsName: map[string][]string{
			"allowedImages": append([]string{}, s.Images...),
			"allowedValues": append([]string{}, s.Values...),
		},
	}
}

// Explain adds to the error of an expression the missing object that it read, which the expression sees as
// null.
func (s *Session) Explain(err error) error {
	if err == nil || s.absent == "" {
		return err
	}
	return fmt.Errorf("%w; resource.Get found no %s", err, s.absent)
}

// lacks records a missing requirement and returns its error.
func (s *Session) lacks(format string, args ...any) error {
	err := &engine.UnsupportedError{Err: fmt.Errorf(format, args...)}
	if s.Missing == nil {
		s.Missing = err
	}
	return err
}

func (s *Session) warn(format string, args ...any) {
	w := engine.Warning(fmt.Sprintf(format, args...))
	if !slices.Contains(s.Warnings, w) {
		s.Warnings = append(s.Warnings, w)
	}
}

// opaque is a value that expressions can only pass to functions. It equals nothing.
type opaque struct {
	ref.Val // null
	kind    *celgo.Type
	value   any
}

func newOpaque(kind *celgo.Type, value any) opaque { return opaque{types.NullValue, kind, value} }

// Type is the type.
func (o opaque) Type() ref.Type { return o.kind }

// Value is what functions take out.
func (o opaque) Value() any { return o.value }
