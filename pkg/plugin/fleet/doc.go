// Package fleet runs the same on several clusters, side by side, and shows what came of it as one run.
//
// What a cluster's run finds is kept, each object with the name of its cluster, until all have ended;
// then it is shown in the order of the clusters. The run itself knows nothing of the others.
package fleet
