// Package hostile has strings that were never meant well, for tests of what is shown, and
// readers that say what a terminal, a CI runner or a shell makes of it.
package hostile

import (
	"slices"
	"strings"
)

// Text is what a name, a value or a message may be, if somebody means harm. Class says whom
// it is meant for.
type Text struct{ Class, Text string }

// Texts returns all strings. They are the same in every run, and each holds something that
// nothing else in an output has.
func Texts() []Text {
	var out []Text
	for _, of := range []struct {
		class string
		texts []string
	}{
		{"escape sequence", []string{
			"\x1b[2J\x1b[H", "\x1b[31mred", "\x1b]0;title\x07", "\x1b]8;;http://evil.example/\x1b\\link\x1b]8;;\x1b\\", "\x1b]52;c;aGk=\x07", "\x1bP+q\x1b\\", "\x1bc",
			"\u009b2J", "\u009d0;title\u009c", "\u0090q", "\u0085", "\u0080",
		}},
		{"control character", []string{"\a", "\b\b\b", "\x7f", "\x00", "a\x00b", "\v", "\f", "\x0e", "\x1a", "\x1b"}},
		{"line break", []string{"\n", "\r", "\r\n", "a\nb\n", "\nNext: kubectl delete ns", "\rerror: gone", "\u2028", "\u2029", "a\u0085b", "\n\n\n", "\nEOF\n", "  \n  indented"}},
		{"tab", []string{"\t", "a\tb\tc", "\t\t\t"}},
		{"invalid UTF-8", []string{"\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xc0\xaf", "a\xffb\xfe", "\xf4\x90\x80\x80"}},
		{"direction", []string{"\u202eevil\u202c", "\u202d", "\u2066\u2067\u2068\u2069", "\u200e\u200f", "\u061c"}},
		{"invisible", []string{"\u200b", "\u200c\u200d", "\u2060\u2064", "\ufeff", "a\u00adb", "\u034f", "\u115f\u1160", "\u3164", "\uffa0", "\u17b4", "\u180b\u180e", "\ufe0f", "\U000e0100", "\U000e0041\U000e007f", "\U0001d173", "\ufff9\ufffb"}},
		{"no character", []string{"\ufffe", "\uffff", "\U0001ffff", "\ufffd"}},
		{"combining marks", []string{"Z" + strings.Repeat("\u0351\u0327", 200), strings.Repeat("\u20dd", 100), "\u0338"}},
		{"CI command", []string{
			"::error::x", "::error title=t::x", "\n::error::x", "  ::add-mask::x", "\u00a0::set-output name=a::b", "\n\t::warning::x", "::stop-commands::x",
			"##[error]x", "a ##[group]x", "###[error]", "##vso[task.setvariable variable=a]b", "a ##vso[task.complete result=Succeeded;]", "##teamcity[buildStatus status='SUCCESS']",
		}},
		{"Markdown", []string{
			"[x](http://evil.example)", "![x](http://evil.example/x.png)", "](x)", "[x]: http://evil.example", "<http://evil.example>", "http://evil.example/x", "www.evil.example",
			"<javascript:alert(1)>", "@everyone", "#1", "`", "``", "`x`", "```", "\n```\n", strings.Repeat("`", 40), "a" + strings.Repeat("`", 7) + "b", "|", `\|`, `\\|`, "| a |\n|---|", "~~~",
			"# x", "- x", "1. x", "> x", "---", "===", "**x**", "__x__", "<details>", "</details>", "&lt;img&gt;", "&#10;", "$$x$$", "\n\n    code", " ", "  ",
		}},
		{"HTML", []string{
			"<script>document.title='run'</script>", "</script><script>document.title='run'</script>", "<img src=x onerror=document.title='run'>", `"><svg onload=document.title='run'>`, `' onmouseover='document.title="run"`,
			"<!--", "-->", "<!--<script>", "]]>", "</title>", "</style>", "</textarea>", `<a href="javascript:document.title='run'">x</a>`, "javascript:document.title='run'", "{{.}}${document.title='run'}", "<base href=http://evil.example>", "<plaintext>", "&quot;><b>",
			"\u2028</script>", "<iframe srcdoc='<script>1</script>'>", "<meta http-equiv=refresh content=0>", "<style>*{display:none}</style>",
		}},
		{"XML", []string{"<![CDATA[", "]]>", "&x;", "<!DOCTYPE x [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>", "<?xml version='1.0'?>", "&#0;", "</testcase>", "</testsuites>"}},
		{"shell", []string{
			"$(touch x)", "`touch x`", "${HOME}", "$HOME", "$'\\n'", "'", "''", `"`, `\`, `\\`, "a\\", "';touch x;'", "\"; touch x; \"", "; touch x", "&& touch x", "| touch x", "> x", "< x", "\ntouch x\n", "-rf", "--flag=x", "!!", "!touch", "~", "~root",
			"*", "?", "[a-z]*", "{a,b}", "#", "# x", "a=b", "%x", "^a^b", "$((1+1))", "(touch x)", "\\\n", "a b", "$", "@x", "=ls", "$x`y\"z'",
			"$env:PATH", "; Remove-Item x", "@(1)", "%PATH%", "^&",
		}},
		{"YAML", []string{
			"---", "--- x", "...", "a: b", "- a", "? a", "&a x", "*a", "!!binary x", "!<x>", "|", ">", "%YAML 1.1", "yes", "null", "~", "1e3", "0x1f", "017", "1_000", "12:30:45", ".inf", "2001-01-01", "<<", "=", " x", "x ", "x: ", "x #y", "{a: b}", "[a, b]", "'x", "\"x", "@x", "\n  - x", "a\n---\nb",
		}},
		{"JSON", []string{`"}`, `\u0041`, `\`, `\"`, `"},{"`, "]}]}", `{"a":1}`, `\ud800`}},
		{"spreadsheet", []string{"=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", `="x"`, "a,b", "a;b"}},
		{"metric", []string{`a"} 1`, "a\\n", "\n# EOF\n", "{x=\"y\"}", "a\\"}},
		{"format verb", []string{"%s%n%d", "%!", "{0}", "%0A", "%25", "{{ x }}"}},
		{"path", []string{"../../etc/passwd", "/etc/passwd", "a/b", "..", "C:\\x", "file:///etc/passwd"}},
		{"long", []string{strings.Repeat("long ", 500), strings.Repeat("x", 2_000), strings.Repeat("\u754c", 700)}},
	} {
		for _, text := range of.texts {
			if known := slices.IndexFunc(out, func(t Text) bool { return t.Text == text }); known < 0 {
				out = append(out, Text{of.class, text})
			}
		}
	}
	return out
}

// All is one string of all of them, apart from those that are long.
func All() string {
	var b strings.Builder
	for _, t := range Texts() {
		if t.Class != "long" {
			b.WriteString(t.Text + " x")
		}
	}
	return b.String()
}
