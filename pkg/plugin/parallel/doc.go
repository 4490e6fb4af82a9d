// Package parallel does something for many things side by side, and hands over what
// comes of it in order.
package parallel
