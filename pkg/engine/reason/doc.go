// Package reason words why a rule leaves an object as it is: briefly, however much
// there is to say, and without the values of Secrets.
package reason
