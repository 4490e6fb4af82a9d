package gatekeeper

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// existence is what has to hold of a part of a location.
type existence string

// A test that names none can hold neither way, so its mutator
// never changes anything, as in Gatekeeper.
const (
	mustExist    existence = "MustExist"
	mustNotExist existence = "MustNotExist"
	never        existence = ""
)

// pathTest is one test as its author wrote it.
type pathTest struct {
	SubPath   location
	Condition existence
}

// pathTests are the tests of one location. The zero value always holds.
type pathTests struct {
	location location
	byDepth  map[int]existence // by the index of the node that is tested
}

// compileTests joins the tests of a location. Its errors are in Gatekeeper's words.
// Tests of the empty path say nothing and are dropped. Where a parent must not
// exist, nothing below it can have to: Gatekeeper looks for this in the order in
// which the tests are written, this looks at the paths.
func compileTests(l location, tests []pathTest) (pathTests, error) {
	t := pathTests{location: l}
	for _, test := range tests {
		if !l.hasPrefix(test.SubPath) {
			return pathTests{}, fmt.Errorf(
				"all subpaths must be a prefix of the `location` value of the mutation: subpath %q is not a prefix of location %q", test.SubPath, l)
		}
		depth := len(test.SubPath) - 1
		if depth < 0 {
			continue
		}
		if known, twice := t.byDepth[depth]; twice && known != test.Condition {
			return pathTests{}, fmt.Errorf("conflicting path test conditions: path %q is marked both %s and %s", test.SubPath, known, test.Condition)
		}
		if t.byDepth == nil {
			t.byDepth = map[int]existence{}
		}
		t.byDepth[depth] = test.Condition
	}
	return t, t.contradiction()
}

// texts lists the tests in the order of the location, as Brief words them.
func (t pathTests) texts() []string {
	var out []string
	for depth := range t.location {
		if _, tested := t.byDepth[depth]; tested {
			out = append(out, (&pathTestError{SubPath: t.location[:depth+1], Condition: t.byDepth[depth]}).Brief())
		}
	}
	return out
}

// contradiction finds a part that must exist below one that must not.
func (t pathTests) contradiction() error {
	absent := -1
	for depth := range t.location {
		condition, tested := t.byDepth[depth]
		switch {
		case !tested:
		case condition == mustNotExist && absent < 0:
			absent = depth
		case condition == mustExist && absent >= 0:
			return fmt.Errorf("conflicting path test conditions: path %q is marked MustExist but parent %q MustNotExist",
				t.location[:depth+1], t.location[:absent+1])
		}
	}
	return nil
}

// refusedForOrder reports whether Gatekeeper would refuse tests that compileTests takes,
// because a part that must not exist is written before one above it that must.
func refusedForOrder(tests []pathTest) bool {
	for i, first := range tests {
		for _, second := range tests[i+1:] {
			if first.Condition == mustNotExist && second.Condition == mustExist &&
				len(second.SubPath) < len(first.SubPath) && len(second.SubPath) > 0 {
				return true
			}
		}
	}
	return false
}

// check returns the test that keeps a mutator from going on past the node at a depth of its
// location, where there is a value or nothing; nil if none does.
func (t pathTests) check(depth int, value any, exists bool) *pathTestError {
	condition, tested := t.byDepth[depth]
	if !tested || condition == mustExist && exists || condition == mustNotExist && !exists {
		return nil
	}
	return &pathTestError{SubPath: t.location[:depth+1], Condition: condition, exists: exists, found: value}
}

// pathTestError is the path test that kept a mutator from changing an object.
type pathTestError struct {
	SubPath   location
	Condition existence

	exists bool
	found  any
}

// Error is like "path test: spec.containers[name: foo] must exist, and is not there".
func (e *pathTestError) Error() string {
	text := "path test: " + e.condition()
	switch {
	case e.Condition == never:
		return text
	case !e.exists:
		return text + ", and is not there"
	}
	return text + ", but it is there (" + engine.BriefValue(e.found) + ")"
}

// Brief is the test without what was found on the one object.
func (e *pathTestError) Brief() string { return "path test: " + e.condition() }

func (e *pathTestError) condition() string {
	switch e.Condition {
	case mustExist:
		return e.SubPath.String() + " must exist"
	case mustNotExist:
		return e.SubPath.String() + " must not exist"
	case never:
	}
	return "that of " + e.SubPath.String() + " has no condition, so it never holds"
}
