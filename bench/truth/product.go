package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/freeport"
)

// Product observes conversations with the sidecar itself: it reads the files that WriteTo wrote into NNN of the folder,
// and listens with a tap to live traffic, HTTP and WebSockets, which a server here answers as it was recorded. It returns the
// contents of the tables of the embedded store. Traffic whose times are those at which it was read is not played at its own
// pace, and has no times. A nil conversation cannot be played so: its connection is neither.
func Product(ctx context.Context, earshot, dir string, all []Recorded) ([]*Conversation, error) {
	p := &product{earshot: earshot, config: filepath.Join(dir, "earshot.yaml")}
	defer p.close()
	free, err := freeport.Loopbacks(len(all))
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf("data_dir: %s\ntelemetry: {listen: \"\"}\nsources:\n", filepath.Join(dir, "data"))
	for i := range all {
		switch r := &all[i]; {
		case !r.Streams[0].Live:
			config += fmt.Sprintf("  - {name: %s, type: file, format: %s, paths: [%q]}\n", Folder(i), r.Format, filepath.Join(dir, Folder(i), "files", "**"))
		case playable(r.Streams):
			upstream := httptest.NewServer(&server{streams: r.Streams})
			p.servers = append(p.servers, upstream)
			p.taps = append(p.taps, tap{free[i], r.Streams})
			config += fmt.Sprintf("  - {name: %s, type: tap, format: %s, listen: %q, upstream: %q}\n", Folder(i), r.Format, free[i], upstream.URL)
		}
	}
	if err := os.WriteFile(p.config, []byte(config), 0o600); err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return p.read(ctx, all)
}

// Folder is the name of the folder, and of the source, of a conversation.
func Folder(i int) string { return fmt.Sprintf("c%03d", i) }

// playable reports whether each stream is one HTTP request with its response, or a WebSocket.
func playable(streams []Stream) bool {
	for _, s := range streams {
		if s.socket() {
			continue
		}
		for i, f := range s.Frames {
			if i > 0 && f.Kind == frame.Request || f.Kind == frame.Text || f.Kind == frame.Binary {
				return false
			}
		}
	}
	return true
}

type product struct {
	earshot, config string
	servers         []*httptest.Server
	taps            []tap
}

type tap struct {
	listen  string
	streams []Stream
}

func (p *product) close() {
	for _, s := range p.servers {
		s.Close()
	}
}

// run runs the sidecar until it is idle, and plays the live traffic to it.
func (p *product) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, p.earshot, "run", "-c", p.config, "--until-idle", "10s") //nolint:gosec // the user's own
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for _, t := range p.taps {
		if err := t.play(ctx, ended); err != nil {
			cancel()
			return fmt.Errorf("%w\n%s", err, out.String())
		}
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("earshot run: %w\n%s", err, out.String())
	}
	return nil
}

// backoff is how long an agent waits before it makes a request again that was refused.
const backoff = 500 * time.Millisecond

// target returns the path of an address.
func target(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		_, address, _ = strings.Cut(rest, "/")
	}
	return "/" + strings.TrimPrefix(address, "/")
}

// play makes the requests of the streams, one after the other.
func (t *tap) play(ctx context.Context, ended <-chan error) error {
	for {
		c, err := net.Dial("tcp", t.listen)
		if err == nil {
			_ = c.Close()
			break
		}
		select {
		case <-ended:
			return errors.New("earshot run ended early")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, s := range t.streams {
		if s.socket() {
			if err := s.dial(ctx, "ws://"+t.listen+target(s.Origin)); err != nil {
				return err
			}
			continue
		}
		method, address, body := http.MethodGet, s.Origin, []byte(nil)
		if f := s.Frames[0]; f.Kind == frame.Request {
			method, address, _ = strings.Cut(f.Name, " ")
			body = f.Data
		}
		req, err := http.NewRequestWithContext(ctx, method, "http://"+t.listen+target(address), bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		if boundary, _, ok := bytes.Cut(body, []byte("\r\n")); ok && bytes.HasPrefix(boundary, []byte("--")) {
			req.Header.Set("Content-Type", "multipart/form-data; boundary="+string(boundary[2:]))
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			time.Sleep(backoff)
		}
	}
	return nil
}

// server answers each request with the next recorded response.
type server struct {
	mu      sync.Mutex
	streams []Stream
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == 0 {
		http.Error(w, "there are no more responses", http.StatusGone)
		return
	}
	next := &s.streams[0]
	frames := next.Frames
	s.streams = s.streams[1:]
	if next.socket() {
		next.serve(w, r)
		return
	}
	for i, f := range frames {
		switch f.Kind {
		case frame.Event:
			w.Header().Set("Content-Type", "text/event-stream")
			if f.Name != "" {
				fmt.Fprintf(w, "event: %s\n", f.Name)
			}
			fmt.Fprintf(w, "data: %s\n\n", bytes.ReplaceAll(f.Data, []byte("\n"), []byte("\ndata: ")))
		case frame.Line:
			w.Header().Set("Content-Type", "application/x-ndjson")
			fmt.Fprintf(w, "%s\n", f.Data)
		case frame.Body:
			w.Header().Set("Content-Type", "application/json")
			if i == 1 && (bytes.Contains(f.Data, []byte(`"error"`)) || bytes.HasPrefix(f.Data, []byte(`{"message":`))) { // a refusal
				w.WriteHeader(http.StatusTooManyRequests)
			}
			_, _ = w.Write(f.Data)
		}
	}
}

// read reads the conversations from the tables.
func (p *product) read(ctx context.Context, all []Recorded) ([]*Conversation, error) {
	rows := make([]observation, len(all))
	find := func(source string) *observation {
		var i int
		if _, err := fmt.Sscanf(source, "c%d", &i); err != nil || i >= len(rows) {
			return &observation{}
		}
		return &rows[i]
	}
	if err := query(ctx, p, `SELECT source, lower(hex(trace_id)) AS Trace, lower(hex(span_id)) AS ID, lower(hex(parent_span_id)) AS Parent, toString(kind) AS Kind, tool_name AS Tool,
		tool_call_id AS Call, toString(outcome) AS Outcome, toString(toUnixTimestamp64Nano(ts)) AS Start, toString(duration_ns) AS Duration, CAST(state = 'open', 'Bool') AS Open FROM spans`, func(source string, s spanRow) {
		o := find(source)
		o.spans = append(o.spans, s)
	}); err != nil {
		return nil, err
	}
	if err := query(ctx, p, `SELECT source, trace_id AS Trace, span_id AS Span, toString(kind) AS Kind, content AS Content, toString(input_tokens) AS Input,
		toString(output_tokens) AS Output, toString(cache_read_tokens) AS CacheRead, toString(cache_write_tokens) AS CacheWrite, toString(reasoning_tokens) AS Reasoning
		FROM messages ORDER BY ts, seq`, func(source string, m messageRow) {
		o := find(source)
		o.messages = append(o.messages, m)
	}); err != nil {
		return nil, err
	}
	out := make([]*Conversation, len(all))
	for i := range all {
		if r := &all[i]; !r.Streams[0].Live || playable(r.Streams) {
			out[i] = rows[i].conversation()
			if r.Heard {
				out[i].forgetTimes()
			}
		}
	}
	return out, nil
}

// query calls row for each row of a query.
func query[R any](ctx context.Context, p *product, sql string, row func(source string, r R)) error {
	c := exec.CommandContext(ctx, p.earshot, "query", "-c", p.config, "-o", "jsonl", sql) //nolint:gosec // the user's own
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", sql, err, stderr.Bytes())
	}
	for line := range bytes.Lines(out) {
		var of struct{ Source string }
		var r R
		if err := errors.Join(json.Unmarshal(line, &of), json.Unmarshal(line, &r)); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		row(of.Source, r)
	}
	return nil
}
