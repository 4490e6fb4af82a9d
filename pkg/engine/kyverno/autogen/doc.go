// Package autogen derives rules for Pod controllers from Kyverno's rules for Pods.
package autogen
