// Package pending makes tasks of the changes that a run is still to make: as they
// are evaluated now, or as a plan or a journal has recorded them.
package pending
