// Package policysource finds policy Documents in files, directories, standard
// input, URLs and the cluster.
package policysource
