package markdown

import (
	"bytes"
	"strings"
)

// block is what is shown of objects that change alike: a heading, and a fenced text
// below it.
type block struct {
	text  string
	short bool // the heading alone
}

func (b block) heading() block {
	text, _, _ := strings.Cut(b.text, "\n\n```")
	return block{text: strings.TrimSuffix(text, "\n") + "\n", short: true}
}

// pages takes the blocks of the changes, and then the summary. It keeps as much of
// the changes as could be shown.
type pages struct {
	room    int
	held    []block
	blocks  int
	ended   bool
	summary bytes.Buffer
}

// Write takes a block: the printer writes each at once.
func (p *pages) Write(b []byte) (int, error) {
	if p.ended {
		return p.summary.Write(b)
	}
	p.blocks++
	at := block{text: strings.TrimLeft(string(b), "\n")}
	if len(at.text) > p.room {
		at = at.heading()
	}
	if len(at.text) <= p.room {
		p.room -= len(at.text)
		p.held = append(p.held, at)
	}
	return len(b), nil
}

func (p *pages) end() []block {
	p.ended = true
	return p.held
}
