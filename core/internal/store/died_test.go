package store

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// logged is the log of a store.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *logged) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// TestDied: the log has how the process of a store ended, and its last output: one that was killed prints nothing.
func TestDied(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "dies")
	script := "#!/bin/sh\necho listening on nothing\n[ -e " + dir + "/again ] && exec sleep 600\n: >" + dir + "/again\necho the reason >&2\nkill -KILL $$\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var log logged
	s, err := Open(t.Context(), Settings{Dir: filepath.Join(dir, "store"), Binary: binary, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Supervise(ctx) }()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(log.String(), "store died") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	<-ended
	s.Close()
	if text := log.String(); !strings.Contains(text, `how="signal: killed"`) || !strings.Contains(text, "the reason") {
		t.Errorf("log: %s", text)
	}
}
