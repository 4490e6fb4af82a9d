package gatekeeper

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// existence is the required state of a part of a location.
type existence string

// A test with neither can never hold, so its mutator changes nothing, as in Gatekeeper.
const (
	mustExist    existence = "MustExist"
	mustNotExist existence = "MustNotExist"
	never        existence = ""
)

type pathTest struct {
	SubPath   location
	Condition existence
}

// pathTests are the tests of a location, by node index.
type pathTests map[int]existence

// compileTests merges the tests of a location. Its errors are in Gatekeeper's words. Tests of the empty path
// are dropped. If a parent must not exist, nothing below it must exist: Gatekeeper checks this in the order
// of the tests, this function by their paths.
func compileTests(l location, tests []pathTest) (pathTests, error) {
	t := pathTests{}
	for _, test := range tests {
		if !l.hasPrefix(test.SubPath) {
			return nil, fmt.Errorf(
				"all subpaths must be a prefix of the `location` value of the mutation: subpath %q is not a prefix of location %q", test.SubPath, l)
		}
		depth := len(test.SubPath) - 1
		if depth < 0 {
			continue
		}
		if known, twice := t[depth]; twice && known != test.Condition {
			return nil, fmt.Errorf("conflicting path test conditions: path %q is marked both %s and %s", test.SubPath, known, test.Condition)
		}
		t[depth] = test.Condition
	}
	return t, t.contradiction(l)
}

// texts lists the tests in location order, as in Brief.
func (t pathTests) texts(l location) []string {
	var out []string
	for _, depth := range slices.Sorted(maps.Keys(t)) {
		out = append(out, (&pathTestError{SubPath: l[:depth+1], Condition: t[depth]}).Brief())
	}
	return out
}

// contradiction returns an error for a part that must exist below one that must not.
func (t pathTests) contradiction(l location) error {
	absent := -1
	for _, depth := range slices.Sorted(maps.Keys(t)) {
		switch condition := t[depth]; {
		case condition == mustNotExist && absent < 0:
			absent = depth
		case condition == mustExist && absent >= 0:
			return fmt.Errorf("conflicting path test conditions: path %q is marked MustExist but parent %q MustNotExist",
				l[:depth+1], l[:absent+1])
		}
	}
	return nil
}

// refusedForOrder reports whether Gatekeeper would refuse tests that compileTests accepts: a part that must
// not exist comes before a parent that must.
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

// Brief returns the test without details of the object.
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
