// Package junit writes a run as JUnit XML: a test case for each rule and object.
//
// A test that fails is a rule that would change the object, one in error a rule
// that could not be evaluated, a skipped one a rule that was skipped. Of a
// run that writes, a test in error is a change that was not made, and one that is
// skipped an object that was left alone. The elements are those of the schema of
// Jenkins' xUnit plugin (junit-10.xsd), which GitLab and others read as well. There
// are no times in it, since equal runs are written as equal bytes.
package junit
