// Package wording says in words, and as one harmless line, what a run deals with and how it went.
package wording
