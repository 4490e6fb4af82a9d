package location

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Condition is what has to hold of a part of a location.
type Condition string

// The conditions. A test that names none can hold neither way, so its mutator
// never changes anything, as in Gatekeeper.
const (
	MustExist    Condition = "MustExist"
	MustNotExist Condition = "MustNotExist"
	Never        Condition = ""
)

// Test is one test as its author wrote it.
type Test struct {
	SubPath   Path
	Condition Condition
}

// Tests are the tests of one location. The zero value always holds.
type Tests struct {
	location Path
	byDepth  map[int]Condition // by the index of the node that is tested
}

// CompileTests joins the tests of a location. Its errors are in Gatekeeper's words.
// Tests of the empty path say nothing and are dropped. Where a parent must not
// exist, nothing below it can have to: Gatekeeper looks for this in the order in
// which the tests are written, this looks at the paths.
func CompileTests(l Path, tests []Test) (Tests, error) {
	t := Tests{location: l}
	for _, test := range tests {
		if !l.HasPrefix(test.SubPath) {
			return Tests{}, fmt.Errorf(
				"all subpaths must be a prefix of the `location` value of the mutation: subpath %q is not a prefix of location %q", test.SubPath, l)
		}
		depth := len(test.SubPath) - 1
		if depth < 0 {
			continue
		}
		if known, twice := t.byDepth[depth]; twice && known != test.Condition {
			return Tests{}, fmt.Errorf("conflicting path test conditions: path %q is marked both %s and %s", test.SubPath, known, test.Condition)
		}
		if t.byDepth == nil {
			t.byDepth = map[int]Condition{}
		}
		t.byDepth[depth] = test.Condition
	}
	return t, t.contradiction()
}

// Texts lists the tests in the order of the location, as Brief words them.
func (t Tests) Texts() []string {
	var out []string
	for depth := range t.location {
		if _, tested := t.byDepth[depth]; tested {
			out = append(out, (&TestError{SubPath: t.location[:depth+1], Condition: t.byDepth[depth]}).Brief())
		}
	}
	return out
}

// contradiction finds a part that must exist below one that must not.
func (t Tests) contradiction() error {
	absent := -1
	for depth := range t.location {
		condition, tested := t.byDepth[depth]
		switch {
		case !tested:
		case condition == MustNotExist && absent < 0:
			absent = depth
		case condition == MustExist && absent >= 0:
			return fmt.Errorf("conflicting path test conditions: path %q is marked MustExist but parent %q MustNotExist",
				t.location[:depth+1], t.location[:absent+1])
		}
	}
	return nil
}

// RefusedForOrder reports whether Gatekeeper would refuse tests that Compile takes,
// because a part that must not exist is written before one above it that must.
func RefusedForOrder(tests []Test) bool {
	for i, first := range tests {
		for _, second := range tests[i+1:] {
			if first.Condition == MustNotExist && second.Condition == MustExist &&
				len(second.SubPath) < len(first.SubPath) && len(second.SubPath) > 0 {
				return true
			}
		}
	}
	return false
}

// Check returns the test that keeps a mutator from going on past the node at a depth of its
// location, where there is a value or nothing; nil if none does.
func (t Tests) Check(depth int, value any, exists bool) *TestError {
	condition, tested := t.byDepth[depth]
	if !tested || condition == MustExist && exists || condition == MustNotExist && !exists {
		return nil
	}
	return &TestError{SubPath: t.location[:depth+1], Condition: condition, exists: exists, found: value}
}

// TestError is the path test that kept a mutator from changing an object.
type TestError struct {
	SubPath   Path
	Condition Condition

	exists bool
	found  any
}

// Error is like "path test: spec.containers[name: foo] must exist, and is not there".
func (e *TestError) Error() string {
	text := "path test: " + e.condition()
	switch {
	case e.Condition == Never:
		return text
	case !e.exists:
		return text + ", and is not there"
	}
	return text + ", but it is there (" + engine.BriefValue(e.found) + ")"
}

// Brief is the test without what was found on the one object.
func (e *TestError) Brief() string { return "path test: " + e.condition() }

func (e *TestError) condition() string {
	switch e.Condition {
	case MustExist:
		return e.SubPath.String() + " must exist"
	case MustNotExist:
		return e.SubPath.String() + " must not exist"
	case Never:
	}
	return "that of " + e.SubPath.String() + " has no condition, so it never holds"
}
