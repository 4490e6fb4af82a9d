// Package jsonvalue reads, compares and measures the values that JMESPath
// expressions work on, within a Budget.
//
// Values are those of unstructured objects: map[string]any, []any, string, bool,
// int64, float64 and nil. Both kinds of numbers compare by value.
package jsonvalue
