package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/inspect"
)

// progress shows a line on a terminal, and nothing elsewhere.
type progress struct {
	mu    sync.Mutex // of the line: others print too
	w     io.Writer
	on    bool
	began time.Time
	last  time.Time
	text  string // of the line; empty: there is none
	rate  rate
	files int // the most that were left
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, on: ok && term.IsTerminal(int(f.Fd())), began: time.Now()}
}

// begin shows the first step, which has no count.
func (p *progress) begin(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draw(what+" ...", time.Now())
}

func (p *progress) draw(text string, now time.Time) {
	if p.on {
		p.last, p.text = now, text
		fmt.Fprint(p.w, "\r\x1b[K", text)
	}
}

func (p *progress) show(n app.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.on && now.Sub(p.last) >= 200*time.Millisecond {
		p.draw(p.line(n, now), now)
	}
}

// above prints in the place of the line, and draws it below again.
func (p *progress) above(print func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text != "" {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	print()
	if p.text != "" {
		fmt.Fprint(p.w, p.text)
	}
}

// Write implements io.Writer, for whole lines above the line.
func (p *progress) Write(lines []byte) (n int, err error) {
	p.above(func() { n, err = p.w.Write(lines) })
	return n, err
}

// line is how far the sidecar has come: a bar with files, bytes, rate and the time left as long
// as there is a backlog of files, and counts behind it.
func (p *progress) line(n app.Progress, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  ", inspect.Span(now.Sub(p.began)))
	perSecond := p.rate.add(now, n.Bytes)
	p.files = max(p.files, n.FilesLeft)
	if n.FilesLeft > 0 && n.BytesLeft > 0 {
		total := n.Bytes + n.BytesLeft
		fmt.Fprintf(&b, "%s  %s of %s  %d of %d files  ", bar(n.Bytes, total, 20), byteSize(n.Bytes), byteSize(total), p.files-n.FilesLeft, p.files)
		if perSecond > 0 {
			left := time.Duration(math.Ceil(float64(n.BytesLeft)/perSecond)) * time.Second
			fmt.Fprintf(&b, "%s/s  %s left  ", byteSize(int64(perSecond)), inspect.Span(left))
		}
	} else {
		fmt.Fprintf(&b, "%s read  ", byteSize(n.Bytes))
	}
	fmt.Fprintf(&b, "%d messages  %d rows stored", n.Messages, n.Committed)
	if n.Problems > 0 {
		fmt.Fprintf(&b, "  %d set aside", n.Problems)
	}
	return b.String()
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text != "" {
		fmt.Fprintln(p.w)
		p.text = ""
	}
}

// bar draws a share of width cells.
func bar(part, whole int64, width int) string {
	n := int(part * int64(width) / max(whole, 1))
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}

// rate is the sum of the last seconds, per second.
type rate struct{ samples []sample }

type sample struct {
	at    time.Time
	bytes int64
}

// rateOver is how far back a rate looks.
const rateOver = 5 * time.Second

// add takes the bytes so far, and returns how many are added per second; 0 before there are two samples
// half a second apart.
func (r *rate) add(now time.Time, bytes int64) float64 {
	r.samples = append(r.samples, sample{now, bytes})
	for len(r.samples) > 2 && now.Sub(r.samples[1].at) >= rateOver {
		r.samples = r.samples[1:]
	}
	first := r.samples[0]
	took := now.Sub(first.at)
	if took < 500*time.Millisecond {
		return 0
	}
	return float64(bytes-first.bytes) / took.Seconds()
}
