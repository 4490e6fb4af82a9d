// Package limit bounds an evaluation: a rule on an object has a deadline, its values have a size, and the
// process has a memory limit, whose error names the running rule.
package limit
