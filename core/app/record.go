package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/replay"
)

// Record runs the listener of one source and writes its frames to rec, redacted, until ctx
// ends, or until nothing is open and nothing has come for untilIdle, if that is
// not zero. Nothing is decoded, stored or remembered.
func Record(ctx context.Context, d Decoders, c *config.Config, name string, rec *replay.Recorder, untilIdle time.Duration, log *slog.Logger) error {
	src, err := sourceNamed(c, name)
	if err != nil {
		return err
	}
	section, ok := src.Section.(source.Live)
	if !ok {
		return fmt.Errorf("source %s: is a file, which is its own recording", name)
	}
	secrets, err := redactor(c, func(string, int) {})
	if err != nil {
		return err
	}
	formats := make(map[string]source.Format)
	for _, format := range src.Formats() {
		if d.Has(c, format) != nil {
			continue // nothing is decoded, and nothing describes the format
		}
		err := d.With(ctx, c, format, func(p *host.Process, _ host.Settings) error {
			info := p.Info()
			formats[format] = described(&info)
			return nil
		})
		if err != nil {
			return fmt.Errorf("source %s: %w", name, err)
		}
	}
	listener, err := section.NewListener(source.Env{Name: src.Name, Format: src.Format, Formats: formats, Logger: log})
	if err != nil {
		return fmt.Errorf("source %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if untilIdle > 0 {
		go func() {
			waitIdle(ctx, listener, rec, untilIdle)
			cancel()
		}()
	}
	if err := listener.Run(ctx, secrets.Recorder(rec)); err != nil {
		return fmt.Errorf("source %s: %w", name, err)
	}
	return nil
}

func sourceNamed(c *config.Config, name string) (*config.Source, error) {
	for i := range c.Sources {
		if c.Sources[i].Name == name {
			return &c.Sources[i], nil
		}
	}
	return nil, fmt.Errorf("source %s: not in the configuration", name)
}

// waitIdle waits until something has come, and then nothing for a while.
func waitIdle(ctx context.Context, l source.Listener, rec *replay.Recorder, after time.Duration) {
	tick := time.NewTicker(min(after, 100*time.Millisecond))
	defer tick.Stop()
	since, last := time.Now(), int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			_, frames, _ := rec.Count()
			if frames != last || frames == 0 || !l.Idle() {
				since, last = now, frames
			} else if now.Sub(since) >= after {
				return
			}
		}
	}
}
