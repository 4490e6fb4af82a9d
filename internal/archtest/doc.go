// Package archtest keeps docs/architecture.md true by tests: its import rule and its table of packages.
package archtest
