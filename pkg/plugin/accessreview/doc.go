// Package accessreview answers what a user may do by asking the API server.
package accessreview
