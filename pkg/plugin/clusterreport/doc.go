// Package clusterreport keeps the reports of a preview in the cluster, one for each object, and reads them back.
//
// A report is named after the UID of its object, and owned by it, so that it goes with it. Each set of reports has a name of
// its own, which is in their labels: runs of other policies keep other sets. What a run no longer finds, it deletes from its set.
package clusterreport
