package e2e

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// document is what a reader of a Markdown file does: the commands of its sh and
// console blocks, the files that it shows, and the scripts of its pipelines.
type document struct {
	parts     []any // string or *command, in order; together they are the text
	commands  []*command
	files     []docFile
	pipelines []string
}

type docFile struct{ name, text string }

// command is one that the document has the reader type. In a sh block that is a line, in
// a console block what stands behind a "$ ", with the output below it. A
// line that ends with a backslash continues in the next.
type command struct {
	line     int
	text     string
	recorded bool // the output is part of the document
	output   string
}

var exitSaid = regexp.MustCompile(`#.*\bexits (\d+)`)

// exit is the code that the document announces, in a comment like "# exits 1".
func (c *command) exit() int {
	if said := exitSaid.FindStringSubmatch(c.text); said != nil {
		code, _ := strconv.Atoi(said[1]) // digits
		return code
	}
	return 0
}

// notRun is the row of the table of that name, "" if there is none.
func (c *command) notRun() string {
	for beginning := range notRun {
		if strings.HasPrefix(c.text, beginning) {
			return beginning
		}
	}
	return ""
}

// shows reports whether the document shows this output. A line "..." stands for any
// lines.
func (c *command) shows(got string) bool {
	pieces := strings.Split("\n"+c.output+"\n", "\n...\n")
	for i, piece := range pieces {
		pieces[i] = regexp.QuoteMeta(piece)
	}
	return regexp.MustCompile(`\A` + strings.Join(pieces, `\n(?s:.*\n)?`) + `\z`).MatchString("\n" + got + "\n")
}

func (d *document) String() string {
	var text strings.Builder
	for _, part := range d.parts {
		switch part := part.(type) {
		case string:
			text.WriteString(part)
		case *command:
			if part.output != "" {
				text.WriteString(part.output + "\n")
			}
		}
	}
	return text.String()
}

var (
	fence    = regexp.MustCompile("^```(\\S*)")
	fileName = regexp.MustCompile("`([^` ]+\\.ya?ml)`:$")
)

// parseDocument reads Markdown. A yaml block is a file when the paragraph before it
// ends with its name in backquotes and a colon.
func parseDocument(text string) *document {
	d := &document{}
	lines := strings.SplitAfter(text, "\n")
	before := ""
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], "\n")
		d.parts = append(d.parts, lines[i])
		opened := fence.FindStringSubmatch(line)
		if opened == nil {
			if strings.TrimSpace(line) != "" {
				before = line
			}
			continue
		}
		length := slices.IndexFunc(lines[i+1:], func(l string) bool { return strings.HasPrefix(l, "```") })
		if length < 0 {
			length = len(lines) - i - 1
		}
		block := lines[i+1 : i+1+length]
		switch opened[1] {
		case "sh":
			d.addShell(block, i+2)
		case "console":
			d.addConsole(block, i+2)
		default:
			d.parts = append(d.parts, strings.Join(block, ""))
			if name := fileName.FindStringSubmatch(before); name != nil && opened[1] == "yaml" {
				d.addFile(docFile{name: name[1], text: strings.Join(block, "")})
			}
		}
		i += length + 1
		if i < len(lines) {
			d.parts = append(d.parts, lines[i])
		}
	}
	return d
}

func (d *document) addShell(block []string, first int) {
	d.parts = append(d.parts, strings.Join(block, ""))
	for i := 0; i < len(block); i++ {
		c := &command{line: first + i}
		c.text, i = joined(block, i)
		if c.text != "" && !strings.HasPrefix(c.text, "#") {
			d.commands = append(d.commands, c)
		}
	}
}

func (d *document) addConsole(block []string, first int) {
	var c *command
	var output []string
	finish := func() {
		if c != nil {
			// The blank line between an output and the next command is the document's.
			c.output = strings.TrimRight(strings.Join(output, ""), "\n")
			d.parts = append(d.parts, c)
			if n := len(output); n > 0 && output[n-1] == "\n" {
				d.parts = append(d.parts, "\n")
			}
		}
		output = nil
	}
	for i := 0; i < len(block); i++ {
		if !strings.HasPrefix(block[i], "$ ") {
			output = append(output, block[i])
			continue
		}
		finish()
		start := i
		c = &command{line: first + i, recorded: true}
		c.text, i = joined(block, i)
		c.text = strings.TrimPrefix(c.text, "$ ")
		d.parts = append(d.parts, strings.Join(block[start:i+1], ""))
		d.commands = append(d.commands, c)
	}
	finish()
}

// joined is the command that begins in a line, and the last line of it.
func joined(block []string, i int) (string, int) {
	text := block[i]
	for strings.HasSuffix(text, "\\\n") && i+1 < len(block) {
		i++
		text += block[i]
	}
	return strings.TrimSpace(text), i
}

// addFile adds a file, and what a pipeline in it calls the plugin for.
func (d *document) addFile(file docFile) {
	d.files = append(d.files, file)
	if !strings.HasPrefix(file.name, ".git") {
		return
	}
	var pipeline any
	if err := yaml.Unmarshal([]byte(file.text), &pipeline); err != nil {
		d.pipelines = append(d.pipelines, "echo "+strconv.Quote(file.name+": "+err.Error())+"; false")
		return
	}
	for _, script := range scripts(pipeline) {
		if strings.Contains(script, "kubectl mutate") {
			d.pipelines = append(d.pipelines, script)
		}
	}
}

// scripts are the values of "run" (GitHub) and "script" (GitLab), in the order of
// jobs by name and of steps as they stand.
func scripts(v any) []string {
	var all []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			all = append(all, scripts(item)...)
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			switch value := v[key].(type) {
			case string:
				if key == "run" {
					all = append(all, value)
				}
			case []any:
				if key == "script" {
					all = append(all, strings.Join(texts(value), "\n"))
					continue
				}
				all = append(all, scripts(value)...)
			default:
				all = append(all, scripts(value)...)
			}
		}
	}
	return all
}

func texts(list []any) []string {
	var all []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

func TestDocumentsAreReadAsTheyAreWritten(t *testing.T) {
	text := strings.Join([]string{
		"Write `p/a.yaml`:", "", "```yaml", "a: 1", "```", "",
		"```sh", "kubectl mutate x \\", "  -A   # the rest; exits 1", "# a remark", "```", "",
		"```console", "$ kubectl mutate y", "one", "...", "three", "", "$ kubectl mutate z", "```", "",
		"In `.gitlab-ci.yml`:", "", "```yaml", "job:", "  script:", "    - kubectl mutate q", "    - echo", "```", "",
	}, "\n")
	d := parseDocument(text)
	if diff := cmp.Diff(text, d.String()); diff != "" {
		t.Errorf("the text is not kept (-want +got):\n%s", diff)
	}
	if len(d.commands) != 3 {
		t.Fatalf("%d commands, want 3", len(d.commands))
	}
	x, y, z := d.commands[0], d.commands[1], d.commands[2]
	if x.line != 8 || x.exit() != 1 || x.recorded || !strings.Contains(x.text, "\\\n  -A") {
		t.Errorf("the command of the sh block: %+v", x)
	}
	if y.line != 14 || y.exit() != 0 || !y.shows("one\ntwo\nthree") || !y.shows("one\nthree") || y.shows("one\ntwo") {
		t.Errorf("the first command of the console block: %+v", y)
	}
	if !z.shows("") || z.shows("text") {
		t.Errorf("the second command of the console block: %+v", z)
	}
	if diff := cmp.Diff([]string{"kubectl mutate q\necho"}, d.pipelines); diff != "" {
		t.Errorf("pipelines (-want +got):\n%s", diff)
	}
	if len(d.files) != 2 || d.files[0] != (docFile{name: "p/a.yaml", text: "a: 1\n"}) {
		t.Errorf("files: %+v", d.files)
	}
}
