package undo

// WithoutKeys is tested by itself.
var WithoutKeys = withoutKeys
