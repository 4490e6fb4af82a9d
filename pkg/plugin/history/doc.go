// Package history lists the runs that wrote to clusters, from their journals.
package history
