// Package archtest keeps the import rule of docs/architecture.md by a test.
package archtest
