// Package human prints what a run finds, and what it wrote, for people: as a diff,
// a summary, a table or Markdown, with objects that change alike shown as one.
package human
