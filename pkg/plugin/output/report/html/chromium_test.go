package html_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The environment of the tests in a browser.
const (
	programVariable  = "CHROMIUM"            // the program, where it is not on the PATH
	requiredVariable = "CHROMIUM_REQUIRED"   // a missing browser is a failure
	pictureVariable  = "CHROMIUM_SCREENSHOT" // a directory for pictures of the pages
)

// browserTime bounds one test in the browser; the machine may be busy.
const browserTime = 3 * time.Minute

// chromium is a headless browser that is driven over a pipe, with the messages of
// the Chrome DevTools Protocol. A pipe needs neither a port nor a WebSocket.
type chromium struct {
	t       *testing.T
	ctx     context.Context
	in      io.Writer
	out     *bufio.Reader
	next    int
	session string
	// errors are the events of the page about something that went wrong.
	errors []string
}

// message is one of the protocol, in either direction.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// findChromium skips the test where there is no browser, unless one is required.
func findChromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(programVariable); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing := "no Chromium: install it (on Debian: apt-get install chromium), or set " + programVariable + " to its path"
	if os.Getenv(requiredVariable) != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// startChromium starts a browser with one page, and ends it with the test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	program := findChromium(t)
	// Not the test's own context: it ends before the browser is closed.
	ctx, cancel := context.WithTimeout(context.Background(), browserTime)
	t.Cleanup(cancel)
	toBrowser, in := pipe(t)
	out, fromBrowser := pipe(t)
	cmd := exec.CommandContext(ctx, program,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
		"--proxy-server=127.0.0.1:9", "--remote-debugging-pipe", "--user-data-dir="+profile(t), "about:blank")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // 3 and 4, as the flag wants them
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = toBrowser.Close(), fromBrowser.Close() // it has its own
	c := &chromium{t: t, ctx: ctx, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		// It closes in good order, and is killed when it does not.
		_, _ = io.WriteString(in, `{"id":1000000,"method":"Browser.close"}`+"\x00")
		patience := time.AfterFunc(10*time.Second, cancel)
		_ = cmd.Wait()
		patience.Stop()
	})
	c.attach()
	return c
}

// profile is a new directory for a browser. Its helpers may still write to it for
// a moment after the browser has gone, which t.TempDir would not bear.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chromium-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 50 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("left behind: %v", err)
	})
	return dir
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

func (c *chromium) attach() {
	c.t.Helper()
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	for targets.TargetInfos == nil {
		c.call("Target.getTargets", nil, &targets)
	}
	for _, target := range targets.TargetInfos {
		if target.Type != "page" {
			continue
		}
		var attached struct{ SessionID string }
		c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
		c.session = attached.SessionID
	}
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.call(domain+".enable", nil, nil)
	}
}

// call sends a command and waits for its answer.
func (c *chromium) call(method string, params, result any) {
	c.t.Helper()
	c.next++
	encoded, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	if params == nil {
		encoded = []byte("{}")
	}
	text, err := json.Marshal(message{ID: c.next, Session: c.session, Method: method, Params: encoded})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.in.Write(append(text, 0)); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	for {
		m := c.read()
		switch {
		case m.ID != c.next:
			c.event(m)
			continue
		case m.Error != nil:
			c.t.Fatalf("%s: %s", method, m.Error.Message)
		case result != nil:
			if err := json.Unmarshal(m.Result, result); err != nil {
				c.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

func (c *chromium) read() message {
	c.t.Helper()
	text, err := c.out.ReadBytes(0)
	if err != nil {
		c.t.Fatalf("the browser went away: %v (%v)", err, c.ctx.Err())
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// event keeps what a page must not do: break, complain, open a dialog, or ask for
// anything beyond its own file.
func (c *chromium) event(m message) {
	switch m.Method {
	case "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening", "Runtime.consoleAPICalled":
		c.errors = append(c.errors, m.Method+" "+string(m.Params))
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if err := json.Unmarshal(m.Params, &p); err != nil || !strings.HasPrefix(p.Request.URL, "file:///") {
			c.errors = append(c.errors, m.Method+" "+string(m.Params))
		}
	}
}

// open shows a page and waits until it is loaded.
func (c *chromium) open(path string) {
	c.t.Helper()
	c.call("Page.navigate", map[string]any{"url": "file://" + filepath.ToSlash(path)}, nil)
	c.until(`location.protocol === "file:" && document.readyState === "complete"`)
}

// run evaluates an expression in the page. Its value comes as JSON does.
func (c *chromium) run(expression string) any {
	c.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	c.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	if out.ExceptionDetails != nil {
		c.t.Fatalf("%s: %s", expression, out.ExceptionDetails.Exception.Description)
	}
	return out.Result.Value
}

// until waits for an expression to become true.
func (c *chromium) until(expression string) {
	c.t.Helper()
	for c.run(expression) != true {
		select {
		case <-c.ctx.Done():
			c.t.Fatalf("never came true: %s", expression)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// click clicks where the middle of an element is, as a mouse does.
func (c *chromium) click(selector string) {
	c.t.Helper()
	at, ok := c.run(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return [r.x + Math.min(r.width/2, 60), r.y + r.height/2]; })()`, selector)).([]any)
	if !ok {
		c.t.Fatalf("no %s", selector)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		c.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

// press presses a key by its name, and its text where it writes one.
func (c *chromium) press(key, text string) {
	c.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, " ": 32, "/": 191}
	down := map[string]any{"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": codes[key]}
	c.call("Input.dispatchKeyEvent", down, nil)
	c.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// write types a text where the focus is.
func (c *chromium) write(text string) {
	c.t.Helper()
	c.call("Input.insertText", map[string]any{"text": text}, nil)
}

// size sets the window's, in CSS pixels.
func (c *chromium) size(width, height int) {
	c.t.Helper()
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500,
	}, nil)
}

// dark chooses the colour scheme.
// picture keeps a picture of the window, for people to look at, where it is asked for.
func (c *chromium) picture(name string) {
	c.t.Helper()
	if os.Getenv(pictureVariable) == "" {
		return
	}
	var shot struct{ Data string }
	c.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	c.keep(name+".png", shot.Data)
}

// print returns the page as it comes out of a printer.
func (c *chromium) print(name string) []byte {
	c.t.Helper()
	var printed struct{ Data string }
	c.call("Page.printToPDF", map[string]any{"paperWidth": 8.27, "paperHeight": 11.69}, &printed)
	return c.keep(name+".pdf", printed.Data)
}

func (c *chromium) keep(name, data string) []byte {
	c.t.Helper()
	content, err := base64.StdEncoding.DecodeString(data)
	if err == nil && os.Getenv(pictureVariable) != "" {
		err = os.WriteFile(filepath.Join(os.Getenv(pictureVariable), name), content, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return content
}

// quiet reports whether the page did nothing that it must not do.
func (c *chromium) quiet() {
	c.t.Helper()
	c.run("0") // so that all events until now have come
	if len(c.errors) > 0 {
		c.t.Errorf("the page misbehaves:\n%s", strings.Join(c.errors, "\n"))
	}
}
