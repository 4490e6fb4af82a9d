// Package openapi reads engine.Schema from OpenAPI v3 schemas: published by an API server, written in a
// CustomResourceDefinition, or built in for Kubernetes' own kinds.
package openapi
