// Package randomtext draws random texts that match a regular expression, as the
// function random() of Kyverno's expression languages does.
//
// Both of them, JMESPath and CEL, hand the pattern to the same generator,
// github.com/zach-klippenstein/goregen, with its defaults. It reads patterns in
// POSIX's syntax, so that \d, \w, (?i) and all else that Perl added is an error,
// and gives ^ and $ no text, wherever they stand. This package keeps that, and
// differs where a text would be of no use in an object: what has no upper bound
// (*, + and {n,}) repeats up to 10 times rather than 4,096; "." and classes draw
// printable ASCII characters where they have any, rather than any code point or
// none; and a pattern that the generator panics on is an error. Texts are drawn
// from a seed, and their cost is bounded.
package randomtext
