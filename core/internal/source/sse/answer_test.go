package sse

import (
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

type flusher interface {
	io.WriteCloser
	Flush() error
}

// TestEncodedAlthoughNotAskedFor: events of a server that compresses are recorded as each arrives.
func TestEncodedAlthoughNotAskedFor(t *testing.T) {
	for name, encode := range map[string]func(io.Writer) flusher{
		"gzip":    func(w io.Writer) flusher { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) flusher { z, _ := flate.NewWriter(w, 5); return z },
		"br":      func(w io.Writer) flusher { return brotli.NewWriter(w) },
		"zstd":    func(w io.Writer) flusher { z, _ := zstd.NewWriter(w); return z },
	} {
		t.Run(name, func(t *testing.T) {
			next := make(chan struct{}, 1)
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", name)
				z := encode(w)
				for i := range 3 {
					fmt.Fprintf(z, "data: é%d\n\n", i)
					_ = z.Flush()
					_ = http.NewResponseController(w).Flush()
					select {
					case <-next:
					case <-r.Context().Done():
						return
					}
				}
				_ = z.Close()
			})
			rec := recordtest.New()
			run(t, rec, Settings{Config: Config{URL: srv.URL}})
			for i := range 3 {
				wait(t, rec, fmt.Sprint("event ", i), first(i+1))
				next <- struct{}{}
			}
			s := wait(t, rec, "end", closed)
			recordtest.Equal(t, "frames", s[0].Text(), "event é0\nevent é1\nevent é2\nclose \n")
		})
	}
}

// TestRetryAfter: a server that is busy is asked again after the pause that it asks for.
func TestRetryAfter(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusTooManyRequests)
	}, hangs("data: 1\n\n"))
	rec := recordtest.New()
	began := time.Now()
	run(t, rec, Settings{Config: Config{URL: srv.URL}})
	wait(t, rec, "event", first(1))
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("asked again after %s", waited)
	}
}
