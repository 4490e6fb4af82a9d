// Package secret masks Secret values wherever they appear.
//
// A Masker learns the values of every Secret that a run sees. In a Secret
// itself, all of data, stringData and the last-applied-configuration annotation
// are masked, known or not. Everywhere else (objects that a policy copied a value
// to, error texts, warnings) the values that were learned are:
//
//   - a value of at least 6 bytes is masked as a part of any text, in clear, in
//     base64, and as JSON quotes it;
//   - a shorter one is masked only where it is the whole of a value, because its
//     letters stand everywhere;
//   - one of less than 3 bytes, and a word such as "true", hides nothing and is
//     not masked.
//
// What policies compute from a known text is learned too (Derive): as an
// engine.Secrets, a Masker is told of it while they are evaluated, and so before
// anything of it is printed.
//
// What identifies an object (apiVersion, kind, name, namespace, uid) stays, and
// so do the names of fields unless they hold a value of 16 bytes or more. No length
// of a value is ever shown.
package secret
