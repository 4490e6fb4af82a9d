// Package html writes a run as one HTML file for a change review, and a comparison as one without a script.
//
// The file needs no network and no server, and its content policy lets nothing run
// but the one script that is part of this package. Objects that change alike are
// one change. All changes are in the file as compressed data, from which the script
// builds the rows that are looked at; the first of them are there as HTML, too, so
// that the page can be read without scripts.
//
// Names and values come from clusters and policies. They reach the page through
// html/template, or as data that become text, never markup.
package html
