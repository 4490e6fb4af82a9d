// Package imageregistry looks images up in their registries, with the credentials
// that the user's docker configuration has for them, or none.
package imageregistry
