// Package advice says what to type after a preview.
package advice
