// Package openapi reads engine.Schema out of OpenAPI v3 schemas, be they
// published by an API server, written in a CustomResourceDefinition, or those of Kubernetes'
// own kinds, which it holds.
package openapi
