// Package version says which build of the program this is.
package version
