// Package spool sorts what comes in any order into sections, and holds in memory a bounded part of it.
package report
