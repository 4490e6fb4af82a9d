//go:build !linux

package process

// machine returns zero: the memory of the machine is unknown.
func machine() int64 { return 0 }

// container returns zero: there are no control groups.
func container() int64 { return 0 }
