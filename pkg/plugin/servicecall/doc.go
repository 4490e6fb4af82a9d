// Package servicecall calls the web services that policies name.
//
// A policy chooses the address, so that a call is only ever made when the user
// allows it, and carries nothing of the user's: no token, no certificate, no
// cookie, and a redirect leads to no other host.
package servicecall
