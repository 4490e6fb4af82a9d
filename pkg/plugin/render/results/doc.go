// Package results prints what came of each object that was to be written.
package results
