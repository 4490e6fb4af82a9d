// Package retry calls a server again that is busy, failing or out of reach.
package retry
