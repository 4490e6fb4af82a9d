// Package factory turns flags into what commands run: readers of policies and
// objects, clients, printers and files.
package factory
