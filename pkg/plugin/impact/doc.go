// Package impact predicts what a change means beyond its fields.
//
// It uses the changed objects, the rules of the API server's own validation, and a few related objects if
// they can be read. Only a dry run shows what the server really does, and which manager loses which field.
package impact
