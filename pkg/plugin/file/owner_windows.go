package file

import "io/fs"

// foreign returns nil: the modes that Go reports say nothing about other users.
func foreign(string, fs.FileInfo) error { return nil }
