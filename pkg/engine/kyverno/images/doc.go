// Package images takes the image references of Pods and their controllers apart,
// as Kyverno's `images` context value shows them.
package images
