package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/msg"
)

// StreamState is the position of a stream in the checkpoint.
type StreamState struct {
	Source, Stream, Origin string
	Pos                    int64 // everything before it is with the exporters or in a spool
	Written                int64 // up to where the store's table of accounts has it, at least
}

// State is the content of a data directory beside the store.
type State struct {
	// Running is set when a sidecar runs; then the streams are unknown.
	Running bool
	Streams []StreamState
	Spooled map[string]int64 // bytes, by exporter
	// Store is the identity of the store that has them; empty when it is not known.
	Store string
}

// ReadState reads the state of a data directory.
func ReadState(c *config.Config) (State, error) {
	var s State
	var err error
	if s.Spooled, err = spooled(c.DataDir); err != nil {
		return s, err
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "checkpoint.db")); err != nil {
		return s, nil // nothing has run here
	}
	check, err := checkpoint.Open(c.DataDir)
	if errors.Is(err, checkpoint.ErrLocked) {
		s.Running = true
		return s, nil
	}
	if err != nil {
		return s, err
	}
	streams, err := check.Streams("")
	for i := range streams {
		r := &streams[i]
		pos := r.Pos
		if r.Replay != nil {
			pos = max(pos, r.Replay.Until)
		}
		s.Streams = append(s.Streams, StreamState{r.Source, r.Key, r.Origin, pos, r.Written()})
	}
	if err == nil {
		s.Store, err = check.Destination(config.StoreExporter)
	}
	return s, errors.Join(err, check.Close())
}

// spooled is how many bytes wait on the disk, by exporter.
func spooled(dir string) (map[string]int64, error) {
	out := make(map[string]int64)
	files, err := filepath.Glob(filepath.Join(dir, "spool", "*", "*.spool"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			out[filepath.Base(filepath.Dir(f))] += info.Size()
		}
	}
	return out, err
}

// Expected decodes the files of the file sources and returns the ids of their messages, by
// source. Nothing is stored.
func Expected(ctx context.Context, s Settings, sources []string) (map[string]map[msg.ID]struct{}, error) {
	c := &collector{ids: make(map[string]map[msg.ID]struct{})}
	s.Exporters = func(context.Context, string) ([]Exporter, error) { return []Exporter{{"doctor", c}}, nil }
	err := Backfill(ctx, s, sources, nil)
	return c.ids, err
}

// collector is an exporter that keeps ids.
type collector struct {
	mu  sync.Mutex
	ids map[string]map[msg.ID]struct{}
}

func (c *collector) Export(_ context.Context, b *export.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Messages {
		h := &b.Messages[i].Host
		if h.Tombstone {
			continue
		}
		if c.ids[h.Source] == nil {
			c.ids[h.Source] = make(map[msg.ID]struct{})
		}
		c.ids[h.Source][h.ID] = struct{}{}
	}
	return nil
}

func (c *collector) Close(context.Context) error { return nil }
