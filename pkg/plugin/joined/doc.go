// Package joined takes the errors apart that errors.Join put together.
package joined
