// Package impact says what a change means beyond its fields.
//
// It judges by the objects at hand, by what the API server's own validation does,
// and by a few objects beside them where they can be read. It is a forecast: what
// the server really does, and who loses which field, is known from a dry run.
package impact
