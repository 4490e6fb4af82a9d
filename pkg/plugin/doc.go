// Package plugin is the command line of kubectl mutate: the root command, its help and completion.
//
// Each command is a package with three parts: Flags hold what was typed, the shared ones from package flags;
// ToOptions opens what the run needs, with package factory; and Options.Run calls the packages that do the
// work, which know neither flags nor terminals nor the process. Package process turns the result into an
// exit code.
package plugin
