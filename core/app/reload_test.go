package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
)

// parts is a destination that gathers batches, and stores a part when it may.
type parts struct {
	mu               sync.Mutex
	stored           map[string]int // by key, how often
	gathered, parted []*export.Batch
	storing          chan struct{} // has a value when a part is being stored
	gate             chan error    // what becomes of it; closed: it is stored
}

func newParts() *parts {
	return &parts{stored: make(map[string]int), storing: make(chan struct{}, 1), gate: make(chan error)}
}

// keep is the batch with keys of its own: the memory of a batch is free when it is gathered.
func keep(b *export.Batch) *export.Batch {
	raw, err := b.MarshalBinary()
	if err != nil {
		panic(err)
	}
	out := new(export.Batch)
	if err := out.UnmarshalBinary(raw); err != nil {
		panic(err)
	}
	return out
}

func (x *parts) add(list ...*export.Batch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range list {
		for i := range b.Messages {
			x.stored[b.Messages[i].Session+" "+b.Messages[i].Key]++
		}
	}
}

func (x *parts) has(n int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.stored) == n
}

func (x *parts) Export(_ context.Context, b *export.Batch) error {
	x.add(b)
	return nil
}

func (x *parts) Gather(b *export.Batch) bool {
	x.gathered = append(x.gathered, keep(b))
	return true
}

func (x *parts) Part() func(context.Context) error {
	x.parted, x.gathered = x.gathered, nil
	return func(ctx context.Context) error {
		select {
		case x.storing <- struct{}{}:
		default:
		}
		select {
		case err := <-x.gate:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		x.add(x.parted...)
		x.parted = nil
		return nil
	}
}

func (x *parts) Ungather(put func(*export.Batch) error) error {
	for _, list := range []*[]*export.Batch{&x.parted, &x.gathered} {
		for len(*list) > 0 {
			if err := put((*list)[0]); err != nil {
				return err
			}
			*list = (*list)[1:]
		}
	}
	return nil
}

func (x *parts) Split(*export.Batch) (halves [2]*export.Batch, ok bool) { return halves, false }
func (x *parts) Close(context.Context) error                            { return nil }

// reloaded is a sidecar whose configuration is changed while it runs.
type reloaded struct {
	*testing.T
	dir    string
	to     *parts
	reload chan *config.Config
	log    *lines
	settle time.Duration
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func (r *reloaded) until(what string, f func() bool) {
	r.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.log.mu.Lock()
			defer r.log.mu.Unlock()
			r.to.mu.Lock()
			defer r.to.mu.Unlock()
			r.Fatalf("%s did not come: %d stored\n%s", what, len(r.to.stored), r.log.text.String())
		}
	}
}

// config has a source for each name, which reads the files of its folder.
func (r *reloaded) config(names ...string) *config.Config {
	r.Helper()
	text := fmt.Sprintf("data_dir: %q\ntelemetry: {listen: \"\"}\ndelivery: {batch_rows: 20, batch_bytes: 32KiB, flush_interval: 20ms}\nsources:\n", filepath.Join(r.dir, "data"))
	for _, n := range names {
		text += fmt.Sprintf("  - {name: %s, type: file, format: words, poll_interval: 1s, paths: [%q]}\n", n, filepath.Join(r.dir, n, "*.jsonl"))
	}
	c, err := config.Types{Sources: SourceTypes()}.Parse("test.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		r.Fatal(err)
	}
	c.Exporters.Sections = map[string]spec.Section{config.StoreExporter: server{}} // no store of its own
	return c
}

// server is the section of a destination that is no embedded store.
type server struct{}

func (server) Validate(*spec.Check) {}

// write appends lines with these numbers to the file of a source.
func (r *reloaded) write(source string, from, to int) {
	r.Helper()
	path := filepath.Join(r.dir, source, "a.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	for i := from; i < to; i++ {
		if _, err := fmt.Fprintf(f, "%s%d %s\n", source, i, strings.Repeat("ahoy ", 200)); err != nil {
			r.Fatal(err)
		}
	}
}

// run runs a sidecar with the source a, and calls f when a part is being stored.
func (r *reloaded) run(f func()) {
	r.Helper()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Settings{
			Config: r.config("a"), Reload: r.reload, Settle: r.settle, Logger: slog.New(slog.NewTextHandler(r.log, nil)),
			Decoders:  Decoders{Names: []string{"words"}, Args: func(string) []string { return []string{"decoder"} }},
			Exporters: func(context.Context, string) ([]Exporter, error) { return []Exporter{{"parts", r.to}}, nil },
		})
	}()
	select {
	case <-r.to.storing:
	case err := <-done:
		r.Fatalf("it has ended: %v", err)
	case <-time.After(time.Minute):
		r.Error("no part is stored")
	}
	f()
	stop()
	if err := <-done; err != nil {
		r.Error(err)
	}
}

// TestReloadWhileAPartIsStored changes the configuration while the destination stores a part of what the source that
// ends has delivered, and gathers more of it: nothing is lost or stored twice, whether the part is stored, fails or takes
// too long, and a source that is named again goes on.
func TestReloadWhileAPartIsStored(t *testing.T) {
	const backlog = 3000
	for name, c := range map[string]struct {
		settle time.Duration
		answer error
		ends   bool // a settles
	}{"stored": {time.Minute, nil, true}, "fails": {time.Minute, errors.New("no"), true}, "too late": {100 * time.Millisecond, nil, false}} {
		t.Run(name, func(t *testing.T) {
			r := &reloaded{t, t.TempDir(), newParts(), make(chan *config.Config), new(lines), c.settle}
			r.write("a", 0, backlog)
			r.write("b", 0, 10)
			r.run(func() {
				r.reload <- r.config("b")
				if c.ends {
					time.Sleep(50 * time.Millisecond)
					if r.log.has("source ended") {
						t.Error("a source ended before all of it is with the exporter")
					}
					if c.answer != nil {
						r.to.gate <- c.answer
					}
					close(r.to.gate)
					r.until("the end of a", func() bool { return r.log.has("source ended") })
				} else {
					r.until("the complaint", func() bool { return r.log.has("not settled") })
				}
				r.write("a", backlog, backlog+10)
				r.reload <- r.config("a", "b")
				if !c.ends {
					close(r.to.gate)
				}
				r.until("all of both", func() bool { return r.to.has(backlog + 20) })
				r.write("a", backlog+10, backlog+20)
				r.write("b", 10, 20)
				r.until("what came later", func() bool { return r.to.has(backlog + 40) })
			})
			for key, n := range r.to.stored {
				if n != 1 {
					t.Errorf("%s is stored %d times", key, n)
				}
			}
		})
	}
}
