// Package walk follows a location through an object and lets a Setter write at
// its end, without modifying the object.
package walk
