// Package redact prepares text and objects for output: it masks what
// Secrets hold, escapes characters that a terminal or a CI runner would act on, and
// reduces server errors to words that are safe to show.
//
// In a Secret, all of data, stringData and the last-applied-configuration annotation is masked. What policies make of
// Secrets is left out before, by its origin: printers are handed engine.Change.Shown. The length of
// a value is never shown.
package redact
