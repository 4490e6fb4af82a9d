// Package limit bounds what an evaluation takes: a rule on an object has a deadline, what it builds has a
// size, and the process has a limit of memory, which knows the rule that was running.
package limit
