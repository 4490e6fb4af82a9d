// Package requester says who makes the request that policies see.
//
// All dialects show them the same fields of a user. Where a request names nobody,
// policies whose expressions are CEL see whom the API server takes the user of this
// run for, and Kyverno's rules see nobody.
package requester
