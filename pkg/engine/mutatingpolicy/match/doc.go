// Package match decides which requests matchConstraints select, as Kyverno's own
// matcher does: unlike an API server's, it knows no equivalent resources, and no
// rules at all select everything.
package match
