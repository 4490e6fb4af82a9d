package gatekeeper

import (
	"errors"
	"fmt"
	"strconv"
)

// The bounds of a path: each node is a level of recursion.
const (
	maxNodes = 256
	maxText  = 10_000 // bytes
)

// syntaxError returns a location's syntax error, in Gatekeeper's words, and the position in bytes, which
// Gatekeeper omits.
func syntaxError(at int, format string, args ...any) error {
	return fmt.Errorf(format+" (at character %d)", append(args, at+1)...)
}

// parseLocation parses a location; an empty one is valid.
//
// The grammar of pkg/mutation/path/parser in Gatekeeper:
//
//	path   := [ object { "." object } ]
//	object := name [ "[" name ":" ( "*" | name | integer ) "]" ]
//	name   := word | quoted
func parseLocation(text string) (location, error) {
	if len(text) > maxText {
		return nil, syntaxError(maxText, "the path has more than %d bytes", maxText)
	}
	p := parser{scanner: scanner{text: text}}
	p.advance()
	var path location
	for p.current.kind != tokenEOF {
		if p.current.kind != tokenIdent {
			return nil, p.unexpected("expected field name or eof")
		}
		path = append(path, fieldNode(p.take().text))
		if p.current.kind == tokenLBracket {
			list, err := p.list()
			if err != nil {
				return nil, err
			}
			path = append(path, list)
		}
		if len(path) > maxNodes {
			return nil, syntaxError(p.current.at, "the path has more than %d nodes", maxNodes)
		}
		if p.current.kind == tokenEOF {
			break
		}
		if p.current.kind != tokenSeparator {
			return nil, p.unexpected("expected '.' or eof")
		}
		if dot := p.take(); p.current.kind == tokenEOF {
			return nil, syntaxError(dot.at, "trailing separators are forbidden")
		}
	}
	return path, nil
}

// parser looks one token ahead.
type parser struct {
	scanner
	current token
}

func (p *parser) advance() { p.current = p.next() }

func (p *parser) take() token {
	t := p.current
	p.advance()
	return t
}

func (p *parser) list() (listNode, error) {
	p.advance()
	if p.current.kind != tokenIdent {
		return listNode{}, p.unexpected("expected keyField in listSpec")
	}
	list := listNode{Key: p.take().text}
	if p.current.kind != tokenColon {
		return listNode{}, p.unexpected("expected ':' following keyField " + list.Key)
	}
	p.advance()
	switch p.current.kind {
	case tokenGlob:
	case tokenIdent:
		list.Value = p.current.text
	case tokenInt:
		n, err := strconv.ParseInt(p.current.text, 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return listNode{}, syntaxError(p.current.at, "invalid integer: overflow in integer string: %s: parsing key value for key: %s", p.current.text, list.Key)
		}
		list.Value = n
	default:
		return listNode{}, p.unexpected("expected key value or glob in listSpec")
	}
	p.advance()
	if p.current.kind != tokenRBracket {
		return listNode{}, p.unexpected("expected ']' following listSpec")
	}
	p.advance()
	return list, nil
}

func (p *parser) unexpected(want string) error {
	return syntaxError(p.current.at, "unexpected token: %s, got: %s", want, p.current)
}
