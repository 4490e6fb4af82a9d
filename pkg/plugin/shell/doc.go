// Package shell writes words that a user may paste into a shell.
package shell
