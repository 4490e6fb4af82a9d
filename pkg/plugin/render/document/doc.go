// Package document writes what programs read about a run: one object with a long list in it, piece by piece, as JSON or YAML.
package document
