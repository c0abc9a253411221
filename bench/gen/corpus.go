package gen

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Options are the properties of a corpus. The zero value of a field is its default.
type Options struct {
	Sessions   int     `json:"sessions"`    // 100
	Bytes      int64   `json:"bytes"`       // of all sessions together, about; 500e6
	Seed       uint64  `json:"seed"`        // any
	MaxContent int     `json:"max_content"` // bytes of one text; 50,000
	Broken     float64 `json:"broken"`      // share of lines that are followed by a torn one; 0
	Repeated   float64 `json:"repeated"`    // share of lines that are written twice; 0
	// Every is how long after one session the next begins; 7 minutes.
	Every time.Duration `json:"every"`
	// Start is when the first session begins. A table whose TTL has passed by then
	// drops the rows.
	Start time.Time `json:"start"` // 2026-11-01 08:00 UTC
}

func (o Options) withDefaults() Options {
	if o.Sessions <= 0 {
		o.Sessions = 100
	}
	if o.Bytes <= 0 {
		o.Bytes = 500e6
	}
	if o.MaxContent <= 0 {
		o.MaxContent = 50_000
	}
	if o.Every <= 0 {
		o.Every = 7 * time.Minute
	}
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	}
	return o
}

// Corpus is a set of sessions, each made when it is asked for.
type Corpus struct {
	options Options
	pool    *pool
}

// Legion returns the corpus of those options.
func Legion(o Options) *Corpus {
	o = o.withDefaults()
	return &Corpus{options: o, pool: newPool(rand.New(rand.NewPCG(o.Seed, 0x7e87)))}
}

// Sessions is how many there are.
func (c *Corpus) Sessions() int { return c.options.Sessions }

// Session makes the n-th session: its id, its messages.jsonl and its account.
// Every session can be made alone, and by several goroutines at once.
func (c *Corpus) Session(n int) (id string, data []byte, a Account) {
	rng := rand.New(rand.NewPCG(c.options.Seed, uint64(n)+1))
	s := newSession(c.options, c.pool, rng, n)
	s.generate(c.options.Bytes / int64(c.options.Sessions))
	return s.id, s.out, s.account
}

// Write writes dir/sessions/<id>/messages.jsonl for every session, and
// dir/oracle.json.
func (c *Corpus) Write(dir string) (*Oracle, error) {
	o := &Oracle{Options: c.options, Sessions: make(map[string]Account)}
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		errs []error
		next = make(chan int)
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := range next {
				id, data, a := c.Session(n)
				err := writeSession(filepath.Join(dir, "sessions", id), data)
				mu.Lock()
				o.Sessions[id] = a
				o.Total.Add(a)
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	for n := range c.options.Sessions {
		next <- n
	}
	close(next)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("gen: %w", err)
	}
	if err := writeOracle(filepath.Join(dir, "oracle.json"), o); err != nil {
		return nil, fmt.Errorf("gen: %w", err)
	}
	return o, nil
}

func writeSession(dir string, data []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "messages.jsonl"), data, 0o644)
}

func writeOracle(path string, o *Oracle) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	_, err = o.WriteTo(w)
	return errors.Join(err, w.Flush(), f.Close())
}
