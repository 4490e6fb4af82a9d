// Package plural writes how many there are of something.
package plural
