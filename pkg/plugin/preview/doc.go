// Package preview evaluates policies over the objects of a run. Every command that
// shows changes or makes them begins with it.
package preview
