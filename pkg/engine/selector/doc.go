// Package selector matches kinds, labels and annotations the way the policy
// languages share it.
package selector
