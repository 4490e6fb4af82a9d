// Package objectdiff shows the two states of a changed object as text: a unified
// diff of YAML for people, or what the program of KUBECTL_EXTERNAL_DIFF prints.
package objectdiff
