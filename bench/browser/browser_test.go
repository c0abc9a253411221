package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium finds the browser.
func chromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no chromium on the PATH: install it (apt-get install chromium), or say where it is with CHROMIUM=/path")
	return ""
}

// tab is a page of a browser.
type tab struct {
	ctx context.Context

	mu      sync.Mutex
	console []string // messages of its console above information
}

func newTab(t *testing.T) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, chromedp.Flag("disable-component-update", true))
	browser, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.console = append(b.console, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				b.console = append(b.console, fmt.Sprint(e.Entry.Text, " ", e.Entry.URL))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs an action with a generous time limit.
func run[T any](t *testing.T, b *tab, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// open shows a page.
func (b *tab) open(t *testing.T, url string) {
	t.Helper()
	run(t, b, chromedp.Navigate(url))
}

func eval[T any](t *testing.T, b *tab, js string) T {
	t.Helper()
	return run(t, b, chromedp.Evaluate[T](js))
}

// press presses keys, one after the other. The driver's own KeyEvent types a character even if
// the page has handled the key itself.
func (b *tab) press(t *testing.T, keys string) {
	t.Helper()
	for _, r := range keys {
		down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: string(r), Text: string(r)}
		switch r {
		case '\r':
			down.Key, down.WindowsVirtualKeyCode = "Enter", 13
		case '\t':
			down.Key, down.Text, down.WindowsVirtualKeyCode = "Tab", "", 9
		}
		up := down
		up.Type, up.Text = input.DispatchKeyEventTypeKeyUp, ""
		for _, e := range []input.DispatchKeyEventParams{down, up} {
			if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// drag moves the mouse from one point to another with its button pressed.
func (b *tab) drag(t *testing.T, x1, y1, x2, y2 float64) {
	t.Helper()
	for _, e := range []input.DispatchMouseEventParams{
		{Type: input.DispatchMouseEventTypeMouseMoved, X: x1, Y: y1},
		{Type: input.DispatchMouseEventTypeMousePressed, X: x1, Y: y1, Button: "left", ClickCount: 1},
		{Type: input.DispatchMouseEventTypeMouseMoved, X: (x1 + x2) / 2, Y: y1, Button: "left"},
		{Type: input.DispatchMouseEventTypeMouseMoved, X: x2, Y: y2, Button: "left"},
		{Type: input.DispatchMouseEventTypeMouseReleased, X: x2, Y: y2, Button: "left", ClickCount: 1},
	} {
		if _, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, e); err != nil {
			t.Fatal(err)
		}
	}
}

// until waits for an expression to be true, on this page or the next one.
func (b *tab) until(t *testing.T, js string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+js+")"))
		if ok {
			return
		}
		if ctx.Err() == nil {
			last = err // of a page that is going away
		}
		select {
		case <-ctx.Done():
			t.Fatalf("never true: %s (%v)", js, last)
		case <-tick.C:
		}
	}
}

// consoleErrors returns the console's messages since the last call.
func (b *tab) consoleErrors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.console
	b.console = nil
	return out
}

// setAppearance sets the preferred color scheme and the size of the window.
func (b *tab) setAppearance(t *testing.T, scheme string, width, height int64) {
	t.Helper()
	run(t, b, chromedp.EmulateViewport(width, height))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// firstPaint is when the page showed something first and when its answer had begun, in milliseconds since it was asked for.
func (b *tab) firstPaint(t *testing.T) []float64 {
	t.Helper()
	b.until(t, `performance.getEntriesByName("first-contentful-paint").length`)
	return eval[[]float64](t, b, `[performance.getEntriesByName("first-contentful-paint")[0].startTime, performance.getEntriesByType("navigation")[0].responseStart]`)
}

// shot saves a screenshot if SHOTS names a directory.
func (b *tab) shot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("SHOTS")
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), run(t, b, chromedp.CaptureScreenshot()), 0o644); err != nil {
		t.Fatal(err)
	}
}
