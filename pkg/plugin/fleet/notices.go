package fleet

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Notices collects the messages of the runs on several clusters, to print each once, with the names of
// its clusters. The zero value is empty and ready for use.
type Notices struct {
	mu    sync.Mutex
	all   []*notice // in the order in which they came up
	known map[string]*notice
}

type notice struct {
	text     string
	clusters []string
}

// Of returns the writer of one cluster's messages. Each has to be written with one call.
func (n *Notices) Of(cluster string) io.Writer { return noticeWriter{n, cluster} }

type noticeWriter struct {
	all     *Notices
	cluster string
}

// Write implements io.Writer.
func (w noticeWriter) Write(p []byte) (int, error) {
	w.all.add(w.cluster, string(p))
	return len(p), nil
}

func (n *Notices) add(cluster, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.known[text]
	if one == nil {
		one = &notice{text: text}
		if n.known == nil {
			n.known = map[string]*notice{}
		}
		n.known[text] = one
		n.all = append(n.all, one)
	}
	if !slices.Contains(one.clusters, cluster) {
		one.clusters = append(one.clusters, cluster)
	}
}

// Flush prints the messages in the order of the clusters, and forgets them. Each line has the names of the clusters.
func (n *Notices) Flush(out io.Writer, order []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	place := func(one *notice) int {
		slices.SortFunc(one.clusters, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		return slices.Index(order, one.clusters[0])
	}
	slices.SortStableFunc(n.all, func(a, b *notice) int { return place(a) - place(b) })
	for _, one := range n.all {
		lines := prefixed{out, redact.EscapeLine(strings.Join(one.clusters, ", ")) + ": "}
		if _, err := io.WriteString(redact.NewWriter(lines), one.text); err != nil {
			return err
		}
	}
	n.all, n.known = nil, nil
	return nil
}

// prefixed puts a prefix before each line of a message.
type prefixed struct {
	out    io.Writer
	prefix string
}

// Write implements io.Writer.
func (w prefixed) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if _, err := fmt.Fprintf(w.out, "%s%s\n", w.prefix, bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
