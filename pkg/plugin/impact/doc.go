// Package impact predicts what a change means beyond its fields.
//
// It looks at the changed objects, at the rules of the API server's own validation, and
// at a few related objects if they can be read. It is a forecast: only a dry run shows
// what the server really does, and who loses which field.
package impact
