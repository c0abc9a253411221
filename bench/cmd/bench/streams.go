package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/bench/proc"
	"github.com/earshot-dev/earshot/core/freeport"
)

// streaming is a provider that streams to many clients at once, with Earshot as a tap
// in front of it: Anthropic's Messages API, a conversation of one prompt a request.
type streaming struct {
	clients int           // each has one response open, all the time
	rounds  int           // responses that a client gets, one after another
	deltas  int           // events with text in a response; framing more open and close it
	lasts   time.Duration // a response
}

// The events of a response around its deltas.
const framing = 5

func (s streaming) responses() int { return s.clients * s.rounds }
func (s streaming) events() int    { return s.responses() * (s.deltas + framing) }

// streamResult is Earshot's cost for it.
type streamResult struct {
	streaming
	arrived arrivals // from the write of the event that ends an answer until a query returns it
	cpu     time.Duration
	peak    int64
	engine  usage
	others  float64
	open    int // responses that were open at once, at most
}

func (s streamResult) perThousand() time.Duration { return s.cpu * 1000 / time.Duration(s.events()) }

// stream runs the clients and the server in this process, with Earshot between them.
func stream(ctx context.Context, e *env, s streaming) (out streamResult, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("streams: %w", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, subjectTimeout)
	defer cancel()
	out.streaming = s
	dir, err := os.MkdirTemp("", "earshot-bench-")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	db, err := startEngine(ctx, e.bin, dir)
	if err != nil {
		return out, err
	}
	defer func() { out.engine = db.close() }()
	api := &provider{streaming: s, ended: make([]time.Time, s.responses())}
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return out, err
	}
	server := &http.Server{Handler: api}
	go func() { _ = server.Serve(up) }()
	defer server.Close()
	tap, err := freeport.Loopback()
	if err != nil {
		return out, err
	}
	config := filepath.Join(dir, "earshot.yaml")
	text := fmt.Sprintf("data_dir: %q\ntelemetry: {listen: \"127.0.0.1:0\"}\nsources:\n  - {name: provider, type: tap, format: anthropic-sse, listen: %q, upstream: %q}\n%sexporters:\n  clickhouse: {dsn: %q}\n",
		filepath.Join(dir, "data"), tap, "http://"+up.Addr().String(), e.config, db.dsn())
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return out, err
	}
	p, err := start([]string{filepath.Join(e.bin, "earshot"), "run", "-c", config})
	if err != nil {
		return out, err
	}
	defer p.kill()
	if err := p.waitListening(ctx, tap); err != nil {
		return out, err
	}
	began, before, ours, engine, cpu := time.Now(), busy(), proc.Own(), engineCPU(db), p.watch.current().CPU
	clients := make(chan error, 1)
	go func() { clients <- s.runClients(ctx, tap) }()
	if out.arrived, err = api.waitAnswers(ctx, db, p); err != nil {
		return out, fmt.Errorf("%w\n%s", err, lastLines(p.log.String()))
	}
	if err := <-clients; err != nil {
		return out, err
	}
	u := p.watch.current()
	out.cpu, out.peak, out.open = u.CPU-cpu, u.Peak, api.most
	spent := busy() - before - (proc.Own() - ours) - out.cpu - (engineCPU(db) - engine)
	out.others = max(spent.Seconds(), 0) / time.Since(began).Seconds() / float64(runtime.NumCPU())
	fmt.Fprintf(os.Stderr, "streams %5d open  cpu of 1,000 events %s peak %4d MiB p50 %s p99 %s   engine %5.2fs   others %2.0f %%\n",
		out.open, ms(out.perThousand()), out.peak>>20, ms(out.arrived.at(0.5)), ms(out.arrived.at(0.99)), (engineCPU(db) - engine).Seconds(), 100*out.others)
	return out, s.check(ctx, db)
}

// check counts the rows, and sums their contents.
func (s streaming) check(ctx context.Context, db *engine) error {
	var sum uint64
	for n := range s.responses() {
		sum += gen.Sum([]byte(s.answer(n)))
	}
	got, err := db.query(ctx, "SELECT countIf(kind = 'assistant' AND complete), sumIf(halfMD5(content), kind = 'assistant'), countIf(kind = 'user') FROM earshot.messages FINAL")
	if err != nil {
		return err
	}
	if row, want := strings.Join(got, " "), fmt.Sprint(s.responses(), sum, s.responses()); row != want {
		return fmt.Errorf("answers, their sum, prompts: got %s, want %s", row, want)
	}
	return nil
}

// answer is the text of response n: that number, and words.
func (s streaming) answer(n int) string {
	var b strings.Builder
	for i := range s.deltas {
		b.WriteString(word(n, i))
	}
	return b.String()
}

func word(n, i int) string {
	if i == 0 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf(" and word %d of it", i)
}

// waitListening waits until the tap accepts connections.
func (p *process) waitListening(ctx context.Context, addr string) error {
	for ; ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
		if ctx.Err() != nil || p.ended() {
			return errors.New("it does not listen: " + lastLines(p.log.String()))
		}
	}
}

// runClients runs the clients, which begin one after the other while one response lasts.
func (s streaming) runClients(ctx context.Context, addr string) error {
	transport := &http.Transport{MaxIdleConnsPerHost: s.clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	errs := make([]error, s.clients)
	var wg sync.WaitGroup
	for i := range s.clients {
		wg.Go(func() {
			time.Sleep(s.lasts * time.Duration(i) / time.Duration(s.clients))
			for round := range s.rounds {
				if errs[i] = s.ask(ctx, client, addr, round*s.clients+i); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ask sends a request and reads its response to the end.
func (s streaming) ask(ctx context.Context, client *http.Client, addr string, n int) error {
	body := fmt.Sprintf(`{"model":"tern-2","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"%d, please"}]}`, n)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Number", strconv.Itoa(n))
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil && bytes.Count(got, []byte("\n\n")) != s.deltas+framing {
		err = fmt.Errorf("response %d has %d events", n, bytes.Count(got, []byte("\n\n")))
	}
	return err
}

// provider is the server.
type provider struct {
	streaming

	mu         sync.Mutex
	ended      []time.Time // when the event was written that ends the answer
	open, most int
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	n, err := strconv.Atoi(r.Header.Get("X-Number"))
	if err != nil || n < 0 || n >= len(p.ended) {
		http.Error(w, "which one?", http.StatusBadRequest)
		return
	}
	p.count(1)
	defer p.count(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	event := func(name, data string) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, data)
		_ = rc.Flush()
	}
	began := time.Now()
	event("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":"tern-2","content":[],"usage":{"input_tokens":12,"output_tokens":1}}`, n))
	event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	for i := range p.deltas {
		time.Sleep(time.Until(began.Add(p.lasts * time.Duration(i) / time.Duration(p.deltas))))
		text, _ := json.Marshal(word(n, i))
		event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%s}`, text))
	}
	time.Sleep(time.Until(began.Add(p.lasts)))
	p.mu.Lock()
	p.ended[n] = time.Now()
	p.mu.Unlock()
	event("content_block_stop", `,"index":0`)
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}`, p.deltas))
	event("message_stop", "")
}

func (p *provider) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open += n
	p.most = max(p.most, p.open)
}

// waitAnswers queries the answers until all have arrived.
func (p *provider) waitAnswers(ctx context.Context, db *engine, q *process) (arrivals, error) {
	tally, moved := newTally(p.responses()), time.Now()
	for ; tally.left > 0; pause(ctx) {
		got, err := db.query(ctx, fmt.Sprintf("SELECT arrayStringConcat(groupArray(splitByChar(' ', content)[1]), ' ') FROM earshot.messages WHERE kind = 'assistant' AND complete AND toInt64OrZero(splitByChar(' ', content)[1]) >= %d", tally.low))
		now := time.Now()
		if err != nil || got[0] == "" { // there are no tables yet, or no answers
			if err = ctx.Err(); err != nil || q.ended() || time.Since(moved) > stallTimeout {
				return nil, fmt.Errorf("%d of %d answers have arrived: %w", p.responses()-tally.left, p.responses(), err)
			}
			continue
		}
		if n, err := tally.note(got[0], now, p.end); err != nil {
			return nil, err
		} else if n > 0 {
			moved = now
		}
	}
	return tally.arrivals(), nil
}

func (p *provider) end(n int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended[n]
}
