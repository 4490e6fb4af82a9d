// Package location reads the locations of Gatekeeper mutators, such as
// `spec.containers[name: foo].image`, into typed paths.
package location
