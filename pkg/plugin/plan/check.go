package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// DefaultMaxAge is how old a plan may be when it is applied.
const DefaultMaxAge = 24 * time.Hour

// clockSkew is how far the clock of another machine may be ahead.
const clockSkew = 5 * time.Minute

// String names a cluster for people, on one line.
func (c Cluster) String() string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"context ", c.Context}, {"", c.Server}, {"kube-system ", string(c.UID)},
	} {
		if p.value != "" {
			parts = append(parts, p.name+p.value)
		}
	}
	return redact.EscapeLine(strings.Join(parts, ", "))
}

// same compares the identities that both know.
func (c Cluster) same(other Cluster) bool {
	if c.UID != "" && other.UID != "" {
		return c.UID == other.UID
	}
	return c.Server == other.Server
}

// CheckCluster returns an error if a run was made on another cluster.
func (r *Run) CheckCluster(here Cluster) error {
	if !r.Cluster.same(here) {
		return fmt.Errorf("it was made on another cluster (%s) than this one (%s)", r.Cluster, here)
	}
	return nil
}

// Check returns an error if a recorded run may not be taken up here: on another cluster, by another version of the
// program, which may evaluate differently, or too late: MaxAge is how old the run may be; 0 stands for any age.
func (r *Run) Check(here Cluster, version string, now time.Time, maxAge time.Duration) error {
	if err := r.CheckCluster(here); err != nil {
		return err
	}
	age := now.Sub(r.Created)
	switch {
	case !sameVersion(r.Version, version):
		return fmt.Errorf("it was made by version %s of this program, and this is %s; make it again", r.Version, version)
	case maxAge > 0 && age > maxAge:
		return fmt.Errorf("it is %s old, which is more than %s (--plan-max-age); make it again", age.Round(time.Second), maxAge)
	case maxAge > 0 && age < -clockSkew:
		return fmt.Errorf("it was made %s in the future; set the clock of this machine", -age.Round(time.Second))
	}
	return nil
}

// sameVersion reports whether two versions differ in their patch level at most.
func sameVersion(a, b string) bool {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	if errX != nil || errY != nil || len(x.Pre) > 0 || len(y.Pre) > 0 {
		return a == b
	}
	return x.Major == y.Major && x.Minor == y.Minor
}
