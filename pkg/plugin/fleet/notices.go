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
	mu      sync.Mutex
	lines   []*notice // in the order in which they came up
	known   map[string]*notice
	size    int // of their texts
	leftOut int
}

type notice struct {
	text     string
	clusters []string
}

// maxNotices bounds the different lines that are held, and maxNoticeBytes their texts together: a server may
// write warnings of any length.
const (
	maxNotices     = 1000
	maxNoticeBytes = 1 << 20
)

// Of returns the writer of one cluster's messages.
func (n *Notices) Of(cluster string) io.Writer { return &noticeWriter{all: n, cluster: cluster} }

type noticeWriter struct {
	all     *Notices
	cluster string
	mu      sync.Mutex
	begun   []byte // of a line
}

// Write implements io.Writer.
func (w *noticeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, p...)
	for {
		line, rest, ended := bytes.Cut(w.begun, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		w.all.add(w.cluster, string(line))
		w.begun = rest
	}
}

func (n *Notices) add(cluster, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.known[text]
	switch {
	case one == nil && (len(n.lines) == maxNotices || n.size+len(text) > maxNoticeBytes):
		n.leftOut++
		return
	case one == nil:
		one = &notice{text: text}
		if n.known == nil {
			n.known = map[string]*notice{}
		}
		n.known[text] = one
		n.lines = append(n.lines, one)
		n.size += len(text)
	}
	if !slices.Contains(one.clusters, cluster) {
		one.clusters = append(one.clusters, cluster)
	}
}

// Flush prints the messages in the order of the clusters, and forgets them.
func (n *Notices) Flush(out io.Writer, order []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	place := func(one *notice) int {
		slices.SortFunc(one.clusters, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		return slices.Index(order, one.clusters[0])
	}
	slices.SortStableFunc(n.lines, func(a, b *notice) int { return place(a) - place(b) })
	for _, one := range n.lines {
		if _, err := fmt.Fprintf(out, "%s: %s\n", redact.EscapeLine(strings.Join(one.clusters, ", ")), one.text); err != nil {
			return err
		}
	}
	if n.leftOut > 0 {
		fmt.Fprintf(out, "and %d more lines\n", n.leftOut)
	}
	n.lines, n.known, n.size, n.leftOut = nil, nil, 0, 0
	return nil
}
