// Package redact prepares text and objects for output: it masks the values of
// Secrets, escapes characters that a terminal or a CI runner would act on, and
// reduces server errors to words that are safe to show.
//
// A Masker learns the values of every Secret that a run sees. In a Secret itself,
// all of data, stringData and the last-applied-configuration annotation are
// masked, known or not. Everywhere else (objects that a policy copied a value to,
// error texts, warnings) the learned values are masked:
//
//   - a value of at least 6 bytes, as a part of any text: in clear, in base64, as JSON and Go
//     quote it, and as URLs encode it;
//   - a shorter one only where it is the whole of a value, because its letters
//     occur everywhere;
//   - one of less than 3 bytes, or a word such as "true", is never masked.
//
// That is the second guard. What policies make of Secrets is left out before, by its origin: printers
// are handed engine.Change.Shown. What identifies an object (apiVersion, kind, name, namespace, uid) stays, and so
// do names of fields, unless they hold a value of 16 bytes or more. The length of
// a value is never shown.
package redact
