package report

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Place is where a policy stands in a file, for programs that show files.
type Place struct {
	// Path is the file's with slashes, not escaped; empty if the policy came from no
	// file.
	Path string
	Line int
}

// PlaceOf returns the place in an origin: "policies/team.yaml:12". Policies of standard input, of
// a URL and of the cluster have no place.
func PlaceOf(origin string) Place {
	at := strings.LastIndexByte(origin, ':')
	if at < 0 || strings.Contains(origin, "://") {
		return Place{}
	}
	line, err := strconv.Atoi(origin[at+1:])
	if err != nil || line < 1 || origin[:at] == "stdin" {
		return Place{}
	}
	return Place{Path: filepath.ToSlash(filepath.Clean(origin[:at])), Line: line}
}
