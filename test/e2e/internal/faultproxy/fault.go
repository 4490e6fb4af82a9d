package faultproxy

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Fault is something that happens to a request.
type Fault string

// The faults.
const (
	// CutBefore closes the connection; the request does not reach the server.
	CutBefore Fault = "cut before"
	// CutAfter closes the connection when the server has answered.
	CutAfter Fault = "cut after"
	// CutShort passes on half of the server's answer and closes the connection.
	CutShort Fault = "cut short"
	// TooManyRequests is a 429 with Retry-After; the request does not reach the server.
	TooManyRequests Fault = "429"
	// InternalError is a 500; the request does not reach the server.
	InternalError Fault = "500"
	// Unavailable is a 503; the request does not reach the server.
	Unavailable Fault = "503"
	// TimeoutAfter is what a server answers whose storage took too long: a 500 with
	// Retry-After, although the request was carried out.
	TimeoutAfter Fault = "timeout after"
	// Latency has the request wait before it is passed on.
	Latency Fault = "latency"
	// Stale answers a read of one object with an older version of it, where the
	// proxy has seen one.
	Stale Fault = "stale read"
)

// Rate says how many of a thousand requests suffer a fault.
type Rate struct {
	Fault    Fault
	PerMille int
}

// chance is what a seed has in store for the requests.
type chance struct {
	seed  uint64
	rates []Rate
	// inARow bounds how many requests of the same kind suffer one after the other.
	inARow int

	asked    map[string]int // how often
	suffered map[string]int // how often in a row
}

// next is the fault that the next request for the same suffers, "" for none, and
// chance for its details.
func (c *chance) next(r *http.Request) (Fault, *rand.Rand) {
	what := subject(r)
	n := c.asked[what]
	c.asked[what]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s", c.seed, n, what)
	random := rand.New(rand.NewPCG(c.seed, h.Sum64()))
	fault := choose(c.rates, random.IntN(1000))
	if fault != "" && c.suffered[what] < c.inARow {
		c.suffered[what]++
		return fault, random
	}
	c.suffered[what] = 0
	return "", random
}

func choose(rates []Rate, at int) Fault {
	for _, r := range rates {
		if at -= r.PerMille; at < 0 {
			return r.Fault
		}
	}
	return ""
}

// subject is what a request asks for. Its namespace does not count: a run that is
// repeated may have another one.
func subject(r *http.Request) string {
	var b strings.Builder
	fmt.Fprint(&b, r.Method, " ", r.URL.Query().Get("dryRun"), " ")
	segments := strings.Split(r.URL.Path, "/")
	for i, s := range segments {
		if i == 0 || segments[i-1] != "namespaces" {
			_, _ = io.WriteString(&b, "/"+s) // never fails
		}
	}
	return b.String()
}
