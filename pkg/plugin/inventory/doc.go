// Package inventory says of policies, before there is any object, what they match,
// what they may change, what they ask of the world and what is the matter with them.
package inventory
