// Package harmless shows text that comes from clusters and policies so that it acts on nothing that reads it: no terminal, no CI runner, no trusting eye.
package harmless
