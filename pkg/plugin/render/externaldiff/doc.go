// Package externaldiff has the program that KUBECTL_EXTERNAL_DIFF names compare objects.
package externaldiff
