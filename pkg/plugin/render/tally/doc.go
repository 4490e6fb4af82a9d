// Package tally counts how often each text was said, in bounded memory.
package tally
