// Package archtest keeps the documents true by tests: the import rule and the table of packages of
// docs/architecture.md, the links of all pages, the messages of docs/troubleshooting.md, and the plot of
// docs/performance.md.
package archtest
