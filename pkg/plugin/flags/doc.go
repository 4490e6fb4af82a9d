// Package flags says what users type: the flags that commands share, their defaults,
// and what cannot be meant by them.
package flags
