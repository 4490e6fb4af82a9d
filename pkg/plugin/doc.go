// Package plugin is the command line of kubectl mutate.
//
// Each command has a file with the same three parts: its Flags hold what was typed,
// those that commands share as package flags has them; ToOptions turns them into
// what is needed, with package factory; and Options.Run hands the work to the packages
// that do it, which know neither flags nor terminals nor the process. The
// result becomes an exit code in exit.go alone.
package plugin
