// Package servererror says what a server answered in words that are safe to show.
package servererror
