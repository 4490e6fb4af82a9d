// Package requester says who makes the request that policies see.
package requester
