package undo

// WithoutKeys is tested separately.
var WithoutKeys = withoutKeys
