// Package plugin is the command line of kubectl mutate.
//
// Each verb has the same three parts: Flags hold what was typed, ToOptions turns
// them into what is needed (the only place where things are wired together), and
// Options.Run does the work without knowing of flags, terminals or the process.
// Exit codes are decided in exit.go alone.
package plugin
