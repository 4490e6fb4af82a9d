// Package expr builds CEL expressions and writes them for people: short, simplified, with double
// quotes, and over several lines where one of 80 columns does not do.
package expr
