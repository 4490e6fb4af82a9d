// Package version identifies the build of the program.
package version
