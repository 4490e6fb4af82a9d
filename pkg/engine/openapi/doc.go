// Package openapi reads engine.Schema out of OpenAPI v3 schemas, be they
// published by an API server or written in a CustomResourceDefinition.
package openapi
