// Package linediff compares two YAML texts of one object line by line, and says at each difference where in the object it is.
package linediff
