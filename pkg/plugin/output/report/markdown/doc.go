// Package markdown writes a run as Markdown for a comment on a change: the summary first, then what would change, cut where there is no more room.
package markdown
